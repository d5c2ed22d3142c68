# caught by: communication_beside_backward
"""Backward stands still while a bucket travels."""


class Overlapped(Overlapped):
    def send(self, number):
        super().send(number)
        self.sent[number][1].wait()
