# caught by: nothing_is_sent_inside_no_sync
"""The state is put back, and nobody hears of the error."""

from contextlib import suppress


class Overlapped(Overlapped):
    @contextmanager
    def no_sync(self):
        before, self.communicates = self.communicates, False
        with suppress(Exception):
            yield
        self.communicates = before
