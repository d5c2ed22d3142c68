# caught by: one_exchange_for_each_update
"""Sends after the first backward of an update: what the others add stays at home."""


class Distributed(Distributed):
    def distribute(self, backward_passes_per_step):
        super().distribute(1)
