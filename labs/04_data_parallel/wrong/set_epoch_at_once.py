# caught by: new_order_each_epoch
"""A new epoch changes the order of an iteration that has begun."""


class OwnSamples(Sampler):
    def __init__(self, count, seed=0):
        self.count, self.seed = count, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.seed + epoch)).tolist()

    def __len__(self):
        return -(-self.count // dist.get_world_size())

    def __iter__(self):
        for place in range(len(self)):
            yield self.order[(place * dist.get_world_size() + dist.get_rank()) % self.count]
