# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""An all-gather: right means, at a price that grows with the ranks."""


class Distributed(Distributed):
    def begin(self):
        super().begin()
        self.parts = []

    def send(self):
        parameter = self.queue[len(self.sent)]
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        self.parts.append([torch.empty_like(parameter.grad) for _ in range(size())])
        self.sent.append(dist.all_gather(self.parts[-1], parameter.grad.contiguous(), async_op=True))

    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        for parameter, parts, work in zip(self.queue, self.parts, self.sent, strict=True):
            work.wait()
            parameter.grad = sum(parts) / size()
        self.begin()
