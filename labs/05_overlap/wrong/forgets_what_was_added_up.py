# caught by: gradients_are_the_mean, nothing_is_sent_inside_no_sync
"""Only the last batch counts."""


class Overlapped(Overlapped):
    def begin(self):
        super().begin()
        for bucket in self.buckets:
            for parameter in bucket:
                parameter.grad = None
