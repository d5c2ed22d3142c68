# caught by: buckets_in_the_order_of_backward, gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""A number takes more than one byte."""


def make_buckets(parameters, bucket_bytes):
    buckets, held = [], bucket_bytes
    for parameter in reversed(parameters):
        if parameter.requires_grad:
            if held >= bucket_bytes:
                buckets.append([])
                held = 0
            buckets[-1].append(parameter)
            held += parameter.numel()
    return buckets
