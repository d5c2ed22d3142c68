# caught by: one_exchange_for_each_update
"""`step` does not care that gradients are means already: the same result, twice as many bytes."""


class Distributed(Distributed):
    def step(self, closure=None):
        self.synchronizes = True
        return super().step(closure)
