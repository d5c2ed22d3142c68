# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Everything is sent when backward is over."""


class Overlapped(Overlapped):
    def ready(self, number):
        pass
