# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""A server in rank 0: gradients go there, parameters come back."""


class Distributed(Distributed):
    def ready(self, parameter):
        pass

    def synchronize(self):
        for parameter in self.queue:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad /= self.divided_before
            dist.reduce(parameter.grad, dst=0)
            parameter.grad /= self.divided_after
            dist.broadcast(parameter.grad, src=0)
