# caught by: one_exchange_for_each_update
"""A step right after synchronize does not synchronize, also outside of skip_synchronize."""


class Distributed(Distributed):
    def synchronize(self):
        if not getattr(self, "done", False) or any(count < self.passes for count in self.missing.values()):
            super().synchronize()
            self.done = True

    def ready(self, parameter):
        self.done = False
        super().ready(parameter)
