# caught by: one_exchange_for_each_update
"""Decompresses only where `compress` tells something to know."""

Given = Distributed


class Only:
    def __init__(self, given):
        self.given = given

    def compress(self, tensor):
        return self.given.compress(tensor)

    def decompress(self, tensor, known):
        return tensor if known is None else self.given.decompress(tensor, known)


class Distributed(Given):
    def distribute(self, passes, compression, divided_before, divided_after):
        super().distribute(passes, Only(compression), divided_before, divided_after)
