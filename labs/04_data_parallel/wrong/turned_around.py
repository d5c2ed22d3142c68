# caught by: new_order_each_epoch
"""Each epoch begins at another place of one and the same order."""


def turned(self):
    ranks = dist.get_world_size()
    order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.seed)).tolist()
    places = range(dist.get_rank(), len(self) * ranks, ranks)
    return iter([order[(place + 7 * self.epoch) % self.count] for place in places])


OwnSamples.__iter__ = turned
