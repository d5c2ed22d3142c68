# caught by: one_exchange_for_each_update
"""Divides by the number of backwards as well."""


class Distributed(Distributed):
    def synchronize(self):
        super().synchronize()
        for parameter in self.queue:
            parameter.grad /= self.passes
