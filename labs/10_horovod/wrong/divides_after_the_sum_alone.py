# caught by: one_exchange_for_each_update
"""The same mean, but sums in half precision become infinite."""


class Distributed(Distributed):
    def distribute(self, passes, compression, divided_before, divided_after):
        super().distribute(passes, compression, 1.0, divided_before * divided_after)
