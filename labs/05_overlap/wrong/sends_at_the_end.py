# caught by: communication_beside_backward
"""Everything is sent when backward is over."""


class Overlapped(Overlapped):
    def ready(self, number):
        pass
