# caught by: steps_as_one_process, exchanges_beside_backward, one_exchange_for_each_update, the_training_script
"""A quarter of the bytes, and not the same training."""


class Distributed(Distributed):
    def begin(self):
        super().begin()
        self.halves = []

    def send(self):
        parameter = self.queue[len(self.sent)]
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        self.halves.append(gradient.half())
        self.sent.append(dist.all_reduce(self.halves[-1], async_op=True))

    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        for parameter, half, work in zip(self.queue, self.halves, self.sent, strict=True):
            work.wait()
            parameter.grad = half.to(parameter.dtype) / size()
        self.begin()
