# caught by: one_exchange_for_each_update
"""zero_grad(set_to_none=False) takes the gradients away."""


class Distributed(Distributed):
    def zero_grad(self, set_to_none=True):
        super().zero_grad()
