# caught by: new_order_each_epoch
"""The seed that was asked for is not used."""


def unseeded(self):
    ranks = dist.get_world_size()
    order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.epoch)).tolist()
    return iter([order[place % self.count] for place in range(dist.get_rank(), len(self) * ranks, ranks)])


OwnSamples.__iter__ = unseeded
