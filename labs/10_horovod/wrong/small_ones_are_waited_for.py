# caught by: exchanges_beside_backward
"""A few numbers are there at once, it thinks, and waits for them in the hook."""


class Distributed(Distributed):
    def send(self):
        super().send()
        work, travelling, _ = self.sent[-1]
        if travelling.numel() < 10:
            work.wait()
