# caught by: exchanges_beside_backward
"""In the order of the model: nothing leaves before the first layer's gradient, which comes last."""


class Distributed(Distributed):
    def distribute(self, backward_passes_per_step):
        super().distribute(backward_passes_per_step)
        self.queue.reverse()
