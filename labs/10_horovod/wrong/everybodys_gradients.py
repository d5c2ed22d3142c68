# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""An all-gather: right means, at a price that grows with the ranks."""


class Distributed(Distributed):
    def send(self):
        parameter = self.queue[len(self.sent)]
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        travelling, known = self.compression.compress(parameter.grad / self.divided_before)
        parts = [torch.empty_like(travelling) for _ in range(size())]
        self.sent.append((dist.all_gather(parts, travelling.contiguous(), async_op=True), parts, known))

    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        for parameter, (work, parts, known) in zip(self.queue, self.sent, strict=True):
            work.wait()
            parameter.grad = self.compression.decompress(sum(parts), known) / self.divided_after
        self.begin()
