# caught by: steps_as_one_process, exchanges_beside_backward, one_exchange_for_each_update
"""Where a rank has no gradient, it sends in another order than the others."""


class Distributed(Distributed):
    def begin(self):
        super().begin()
        self.works = {}

    def exchange(self, parameter):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad /= self.divided_before
        travelling, known = self.compression.compress(parameter.grad)
        self.works[parameter] = (dist.all_reduce(travelling, async_op=True), travelling, known)
        self.sent.append(self.works[parameter])

    def ready(self, parameter):
        if self.missing[parameter] == 0:
            raise AssertionError("too many backwards")
        self.missing[parameter] -= 1
        if self.missing[parameter] == 0:
            self.exchange(parameter)

    def synchronize(self):
        for parameter in self.queue:
            if parameter not in self.works:
                self.exchange(parameter)
            work, travelled, known = self.works[parameter]
            work.wait()
            parameter.grad = self.compression.decompress(travelled, known) / self.divided_after
        self.begin()
