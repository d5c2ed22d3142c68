# caught by: exchanges_beside_backward
"""zero_grad goes through, and what arrives later is added to nothing."""


class Distributed(Distributed):
    def zero_grad(self, set_to_none=True):
        torch.optim.Optimizer.zero_grad(self, set_to_none)
