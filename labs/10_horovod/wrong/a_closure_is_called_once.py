# caught by: one_exchange_for_each_update
"""Calls the closure itself, before the step: an optimizer that calls it several times gets the first gradients again."""


class Distributed(Distributed):
    def step(self, closure=None):
        if closure is None:
            return super().step()
        loss = closure()
        if self.synchronizes:
            self.synchronize()
        synchronizes, self.synchronizes = self.synchronizes, False
        try:
            super().step(lambda: loss)
        finally:
            self.synchronizes = synchronizes
        return loss
