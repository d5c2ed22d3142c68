# caught by: one_exchange_for_each_update
"""A rank that makes no backward sends nothing."""


class Distributed(Distributed):
    def synchronize(self):
        if any(count < self.passes for count in self.missing.values()):
            super().synchronize()
