# caught by: exchanges_beside_backward
"""A backward after the exchange has begun adds to a gradient, and nobody notices."""


class Distributed(Distributed):
    def ready(self, parameter):
        if self.missing[parameter]:
            super().ready(parameter)
