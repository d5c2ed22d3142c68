# caught by: new_order_each_epoch
"""Samples in the order of the file, moved on by one in each epoch."""


def in_order(self):
    ranks = dist.get_world_size()
    return iter([(place + self.epoch) % self.count for place in range(dist.get_rank(), len(self) * ranks, ranks)])


OwnSamples.__iter__ = in_order
