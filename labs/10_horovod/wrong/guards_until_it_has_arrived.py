# caught by: exchanges_beside_backward
"""zero_grad goes through once everything has arrived, although nobody has taken it."""


class Distributed(Distributed):
    def zero_grad(self, set_to_none=True):
        assert all(work.is_completed() for work, _, _ in self.sent)
        torch.optim.Optimizer.zero_grad(self, set_to_none)
