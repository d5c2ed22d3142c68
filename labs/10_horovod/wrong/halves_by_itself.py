# caught by: one_exchange_for_each_update
"""Numbers travel in half or in whole, whatever an own compression makes of them."""


class Distributed(Distributed):
    def distribute(self, passes, compression, divided_before, divided_after):
        known = compression if compression is Compression.fp16 else Compression.none
        super().distribute(passes, known, divided_before, divided_after)
