# caught by: steps_as_one_process, one_exchange_for_each_update, the_training_script
"""Half of the updates are made with each rank's own gradients."""


class Distributed(Distributed):
    turn = 0

    def synchronize(self):
        kept = [None if one.grad is None else one.grad.clone() for one in self.queue]
        super().synchronize()
        self.turn += 1
        if self.turn % 2 == 0:
            for parameter, gradient in zip(self.queue, kept, strict=True):
                parameter.grad = gradient
