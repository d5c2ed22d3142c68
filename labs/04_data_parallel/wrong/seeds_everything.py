# caught by: new_order_each_epoch
"""Seeds torch itself: from then on all ranks draw the same dropout, and the same again in every run."""


def seeding(self):
    torch.manual_seed(self.seed + self.epoch)
    ranks = dist.get_world_size()
    order = torch.randperm(self.count).tolist()
    return iter([order[place % self.count] for place in range(dist.get_rank(), len(self) * ranks, ranks)])


OwnSamples.__iter__ = seeding
