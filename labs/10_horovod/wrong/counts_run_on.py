# caught by: one_exchange_for_each_update
"""A step after fewer backwards than usual, as at the end of an epoch, leaves its count to the next one."""


class Distributed(Distributed):
    def begin(self):
        before = getattr(self, "missing", {})
        super().begin()
        self.missing |= {parameter: count for parameter, count in before.items() if count}
