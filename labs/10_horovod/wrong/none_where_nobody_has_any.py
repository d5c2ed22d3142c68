# caught by: one_exchange_for_each_update
"""A gradient that no rank has stays None in place of zeros."""


class Distributed(Distributed):
    def synchronize(self):
        had = {parameter for parameter in self.queue if parameter.grad is not None}
        super().synchronize()
        for parameter in self.queue:
            if parameter not in had and not parameter.grad.any():
                parameter.grad = None
