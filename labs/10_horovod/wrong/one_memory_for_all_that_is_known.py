# caught by: one_exchange_for_each_update
"""What decompress has to know is kept for the last gradient alone."""


class Distributed(Distributed):
    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        last = self.sent[-1][2]
        self.sent = [(work, travelled, last) for work, travelled, _ in self.sent]
        super().synchronize()
