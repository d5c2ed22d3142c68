# caught by: shares_disjoint_and_complete, new_order_each_epoch
"""Each rank works as much as one process would."""


def everything(self):
    generator = torch.Generator().manual_seed(self.seed + self.epoch)
    return iter(torch.randperm(self.count, generator=generator).tolist())


OwnSamples.__iter__ = everything
OwnSamples.__len__ = lambda self: self.count
