# caught by: shares_disjoint_and_complete
"""Nothing is filled up: the ranks with one sample less end the epoch while the others still wait for them."""


def as_they_come(self):
    generator = torch.Generator().manual_seed(self.seed + self.epoch)
    order = torch.randperm(self.count, generator=generator).tolist()
    return iter(order[dist.get_rank() :: dist.get_world_size()])


OwnSamples.__iter__ = as_they_come
OwnSamples.__len__ = lambda self: len(range(dist.get_rank(), self.count, dist.get_world_size()))
