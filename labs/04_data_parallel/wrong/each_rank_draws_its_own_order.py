# caught by: shares_disjoint_and_complete, new_order_each_epoch
"""Seeds that differ by rank: orders that do not fit together, so some samples come twice and others never."""


def drawn(self):
    generator = torch.Generator().manual_seed(self.seed + 1000 * self.epoch + dist.get_rank())
    order = torch.randperm(self.count, generator=generator).tolist()
    size = len(self) * dist.get_world_size()
    return iter((order * dist.get_world_size())[dist.get_rank() : size : dist.get_world_size()])


OwnSamples.__iter__ = drawn
