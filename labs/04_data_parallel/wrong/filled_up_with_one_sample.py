# caught by: shares_disjoint_and_complete
"""The first sample of the order counts up to N times."""


def filled(self):
    generator = torch.Generator().manual_seed(self.seed + self.epoch)
    order = torch.randperm(self.count, generator=generator).tolist()
    order += order[:1] * (-self.count % dist.get_world_size())
    return iter(order[dist.get_rank() :: dist.get_world_size()])


OwnSamples.__iter__ = filled
