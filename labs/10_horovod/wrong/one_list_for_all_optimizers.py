# caught by: exchanges_beside_backward, one_exchange_for_each_update
"""Exchanges of all optimizers stand in one list: the first to synchronize divides those of the others by its number."""

sent_by_all = []


class Distributed(Distributed):
    def send(self):
        super().send()
        sent_by_all.append((self.queue[len(self.sent) - 1], *self.sent[-1]))

    def synchronize(self):
        while len(self.sent) < len(self.queue):
            self.send()
        for parameter, work, travelled, known in sent_by_all:
            work.wait()
            parameter.grad = self.compression.decompress(travelled, known) / self.divided_after
        sent_by_all.clear()
        self.begin()
