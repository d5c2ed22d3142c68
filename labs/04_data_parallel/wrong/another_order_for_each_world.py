# caught by: new_order_each_epoch
"""Draws from a seed in which the number of ranks counts: a run taken up on more ranks goes through another order."""


class OwnSamples(OwnSamples):
    def __iter__(self):
        ranks = dist.get_world_size()
        generator = torch.Generator().manual_seed(self.seed + self.epoch + 1000 * ranks)
        order = torch.randperm(self.count, generator=generator).tolist()
        return (order[place % self.count] for place in range(dist.get_rank(), len(self) * ranks, ranks))
