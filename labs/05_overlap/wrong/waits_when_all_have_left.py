# caught by: gradients_are_the_mean, one_all_reduce_for_each_bucket, communication_beside_backward
"""The hook of the last bucket waits for all of them, though backward goes on below it, through frozen layers."""


class Overlapped(Overlapped):
    def ready(self, number):
        super().ready(number)
        if self.communicates and len(self.sent) == len(self.buckets):
            for _, work in self.sent.values():
                work.wait()
