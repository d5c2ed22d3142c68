# caught by: steps_as_one_process
"""Where a rank has no gradient, it sends in another order than the others."""


class Distributed(Distributed):
    def begin(self):
        super().begin()
        self.works = {}

    def exchange(self, parameter):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        self.works[parameter] = dist.all_reduce(parameter.grad, async_op=True)
        self.sent.append(self.works[parameter])

    def ready(self, parameter):
        self.missing[parameter] -= 1
        if self.missing[parameter] == 0:
            self.exchange(parameter)

    def synchronize(self):
        for parameter in self.queue:
            if parameter not in self.works:
                self.exchange(parameter)
            self.works[parameter].wait()
            parameter.grad /= size()
        self.begin()
