# caught by: one_exchange_for_each_update
"""Divides what arrived before it is decompressed: means too large for half precision become infinite."""


class Distributed(Distributed):
    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        for parameter, (work, travelled, known) in zip(self.queue, self.sent, strict=True):
            work.wait()
            parameter.grad = self.compression.decompress(travelled / self.divided_after, known)
        self.begin()
