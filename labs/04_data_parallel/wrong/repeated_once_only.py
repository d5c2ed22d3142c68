# caught by: shares_disjoint_and_complete
"""Repeats the order once, and then only its first sample."""


class OwnSamples(OwnSamples):
    def __iter__(self):
        ranks = dist.get_world_size()
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.count, generator=generator).tolist()
        filled = (order * 2 + order[:1] * ranks)[: len(self) * ranks]
        return iter(filled[dist.get_rank() :: ranks])
