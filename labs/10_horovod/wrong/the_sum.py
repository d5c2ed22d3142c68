# caught by: steps_as_one_process, one_exchange_for_each_update, the_training_script
"""Gradients are added up and not divided."""


class Distributed(Distributed):
    def distribute(self, passes, compression, *given):
        super().distribute(passes, compression, 1.0, 1.0)
