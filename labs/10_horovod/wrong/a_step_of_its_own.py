# caught by: steps_as_one_process, one_exchange_for_each_update, the_training_script
"""Subtracts the mean gradient itself: plain SGD, whatever the optimizer is."""


class Distributed(Distributed):
    @torch.no_grad()
    def step(self, closure=None):
        with torch.enable_grad():
            loss = closure() if closure else None
        if self.synchronizes:
            self.synchronize()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter -= group["lr"] * parameter.grad
        return loss
