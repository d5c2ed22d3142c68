# caught by: steps_as_one_process, one_exchange_for_each_update, the_training_script
"""The same gradients on every rank, at the right price."""


class Distributed(Distributed):
    def send(self):
        parameter = self.queue[len(self.sent)]
        parameter.grad = torch.zeros_like(parameter)
        super().send()
