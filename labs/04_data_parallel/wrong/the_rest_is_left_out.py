# caught by: shares_disjoint_and_complete
"""As with drop_last: the last samples of the order are nobody's."""


def whole_shares(self):
    generator = torch.Generator().manual_seed(self.seed + self.epoch)
    order = torch.randperm(self.count, generator=generator).tolist()
    return iter(order[dist.get_rank() : len(self) * dist.get_world_size() : dist.get_world_size()])


OwnSamples.__iter__ = whole_shares
OwnSamples.__len__ = lambda self: self.count // dist.get_world_size()
