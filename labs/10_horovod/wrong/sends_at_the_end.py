# caught by: exchanges_beside_backward
"""Right means, and the links rest while backward is at work."""


class Distributed(Distributed):
    def ready(self, parameter):
        self.missing[parameter] -= 1
