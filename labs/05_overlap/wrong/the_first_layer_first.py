# caught by: buckets_in_the_order_of_backward, gradients_are_the_mean, layers_that_a_rank_does_not_use, one_all_reduce_for_each_bucket, communication_beside_backward, nothing_is_sent_inside_no_sync
"""Buckets in the order of forward: the first one is whole when backward is over."""


def make_buckets(parameters, bucket_bytes):
    buckets, held = [], bucket_bytes
    for parameter in parameters:
        if parameter.requires_grad:
            if held >= bucket_bytes:
                buckets.append([])
                held = 0
            buckets[-1].append(parameter)
            held += parameter.numel() * parameter.element_size()
    return buckets
