# caught by: gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""A bucket of one parameter each: the latency is paid for every one of them."""


class Overlapped(Overlapped):
    def __init__(self, model, bucket_bytes):
        super().__init__(model, 1)
