# caught by: shares_disjoint_and_complete, new_order_each_epoch
"""A new order in every epoch, of the same samples: no rank ever sees those of another."""


def shuffled(self):
    ranks = dist.get_world_size()
    own = torch.tensor([place % self.count for place in range(dist.get_rank(), len(self) * ranks, ranks)])
    generator = torch.Generator().manual_seed(self.seed + self.epoch)
    return iter(own[torch.randperm(len(own), generator=generator)].tolist())


OwnSamples.__iter__ = shuffled
