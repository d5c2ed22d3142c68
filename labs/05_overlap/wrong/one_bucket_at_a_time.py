# caught by: layers_that_a_rank_does_not_use, communication_beside_backward
"""A bucket that was whole before its turn stays until the end, though its turn has come."""


class Overlapped(Overlapped):
    def ready(self, number):
        if self.communicates:
            self.missing[number] -= 1
            if number == len(self.sent) and self.missing[number] == 0:
                self.send(number)
