# caught by: sharded_adam_as_one_process, a_share_of_the_state
"""Parameters get new memory, and who holds the old one trains on with old numbers."""


class ShardedAdam:
    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-8):
        self.lr, self.betas, self.eps = lr, betas, eps
        self.parameters = [parameter for parameter in dict.fromkeys(parameters) if parameter.requires_grad]
        numbers = sum(parameter.numel() for parameter in self.parameters)
        self.share = -(-numbers // dist.get_world_size())
        self.mean, self.square = self.parameters[0].new_zeros(2, self.share)
        self.steps = 0

    @torch.no_grad()
    def step(self):
        ranks, rank = dist.get_world_size(), dist.get_rank()
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.parameters]
        gradient = torch.empty_like(self.mean)
        dist.reduce_scatter(gradient, list(self.flat(gradients).chunk(ranks)))
        gradient /= ranks
        self.steps += 1
        (first, second), steps = self.betas, self.steps
        self.mean.mul_(first).add_(gradient, alpha=1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        own = self.flat(self.parameters).chunk(ranks)[rank]
        own -= self.lr * self.mean / (1 - first**steps) / ((self.square / (1 - second**steps)).sqrt() + self.eps)
        parts = [torch.empty_like(own) for _ in range(ranks)]
        dist.all_gather(parts, own)
        sizes = [one.numel() for one in self.parameters]
        for parameter, new in zip(self.parameters, torch.cat(parts)[: sum(sizes)].split(sizes), strict=True):
            parameter.data = new.reshape(parameter.shape).clone()

    def flat(self, tensors):
        whole = torch.cat([one.flatten() for one in tensors])
        return functional.pad(whole, (0, self.share * dist.get_world_size() - len(whole)))
