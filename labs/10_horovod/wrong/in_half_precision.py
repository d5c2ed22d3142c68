# caught by: steps_as_one_process, exchanges_beside_backward, one_exchange_for_each_update, the_training_script
"""A quarter of the bytes, and not the same training."""


class Distributed(Distributed):
    def distribute(self, passes, compression, *given):
        super().distribute(passes, Compression.fp16, *given)
