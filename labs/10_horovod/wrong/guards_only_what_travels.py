# caught by: exchanges_beside_backward
"""A complete gradient that waits for its turn takes one backward more, without a word."""


class Distributed(Distributed):
    def ready(self, parameter):
        begun = any(parameter is one for one in self.queue[: len(self.sent)])
        if self.missing[parameter] or begun:
            super().ready(parameter)
