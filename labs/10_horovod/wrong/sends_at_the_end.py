# caught by: exchanges_beside_backward
"""Right means, and the links rest while backward is at work."""


class Distributed(Distributed):
    def ready(self, parameter):
        if self.missing[parameter] == 0:
            raise AssertionError("too many backwards")
        self.missing[parameter] -= 1
