# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""From the second step on, everything is sent when backward is over."""


class Overlapped(Overlapped):
    steps = 0

    def ready(self, number):
        if self.steps == 0:
            super().ready(number)

    def finish(self):
        super().finish()
        self.steps += self.communicates
