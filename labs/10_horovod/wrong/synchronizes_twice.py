# caught by: one_exchange_for_each_update
"""`step` does not care that gradients are means already: the same result, twice as many bytes."""


class Distributed(Distributed):
    def step(self):
        self.synchronizes = True
        super().step()
