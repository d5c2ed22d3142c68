# caught by: steps_as_one_process, exchanges_beside_backward, one_exchange_for_each_update, the_training_script
"""Each rank steps on its own, then parameters are averaged: right under SGD without clipping."""

Own = Distributed


class Distributed(Own):
    def ready(self, parameter):
        pass

    def synchronize(self):
        for parameter in self.queue:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    def step(self, closure=None):
        self.synchronize()
        loss = super(Own, self).step(closure)
        for parameter in self.queue:
            dist.all_reduce(parameter.data)
            parameter.data /= size()
        return loss
