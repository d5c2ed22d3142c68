# caught by: nothing_is_sent_inside_no_sync
"""The gradients are right, and cost three times the traffic."""


class Overlapped(Overlapped):
    @contextmanager
    def no_sync(self):
        yield
