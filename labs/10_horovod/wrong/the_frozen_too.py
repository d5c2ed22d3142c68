# caught by: steps_as_one_process, one_exchange_for_each_update
"""What is not trained is sent as zeros, and decays."""


class Distributed(Distributed):
    def distribute(self, *given):
        super().distribute(*given)
        self.queue += [one for group in self.param_groups for one in group["params"] if not one.requires_grad]
        self.begin()
