# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Backward stands still where a bucket is whole before the one before it has arrived."""


class Overlapped(Overlapped):
    def send(self, number):
        if number:
            self.sent[number - 1][1].wait()
        super().send(number)
