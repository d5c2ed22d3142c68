# caught by: one_exchange_for_each_update
"""Divides by divided_before whenever a backward has added to a gradient: right with one backward."""


class Distributed(Distributed):
    def ready(self, parameter):
        if self.missing[parameter] > 1:
            parameter.grad /= self.divided_before
        super().ready(parameter)
