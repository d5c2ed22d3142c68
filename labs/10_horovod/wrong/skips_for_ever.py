# caught by: one_exchange_for_each_update
"""Once skipped, always skipped."""


class Distributed(Distributed):
    @contextmanager
    def skip_synchronize(self):
        self.synchronizes = False
        yield
