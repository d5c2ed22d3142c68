# caught by: nothing_is_sent_inside_no_sync
"""Never communicates again."""


class Overlapped(Overlapped):
    @contextmanager
    def no_sync(self):
        self.communicates = False
        yield
