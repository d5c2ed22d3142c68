# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""Takes Compression.fp16 and does not compress."""


class Distributed(Distributed):
    def distribute(self, passes, compression, *given):
        super().distribute(passes, Compression.none, *given)
