# caught by: exchanges_beside_backward
"""Backward stands still until the previous exchange is over: two never wait for the link."""


class Distributed(Distributed):
    def send(self):
        if self.sent:
            self.sent[-1][0].wait()
        super().send()
