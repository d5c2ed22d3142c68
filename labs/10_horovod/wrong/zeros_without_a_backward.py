# caught by: one_exchange_for_each_update
"""A gradient that was set by hand counts as none."""


class Distributed(Distributed):
    def send(self):
        parameter = self.queue[len(self.sent)]
        if self.missing[parameter] == self.passes:
            parameter.grad = torch.zeros_like(parameter)
        super().send()
