# caught by: nothing_is_sent_inside_no_sync
"""Whoever leaves the inner one sends again, inside the outer one."""


class Overlapped(Overlapped):
    @contextmanager
    def no_sync(self):
        self.communicates = False
        try:
            yield
        finally:
            self.communicates = True
