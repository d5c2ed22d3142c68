# caught by: buckets_in_the_order_of_backward, gradients_are_the_mean, one_all_reduce_for_each_bucket, communication_beside_backward
"""A frozen parameter never gets a gradient, and has no hook."""


def make_buckets(parameters, bucket_bytes):
    buckets, held = [], bucket_bytes
    for parameter in reversed(parameters):
        if held >= bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel() * parameter.element_size()
    return buckets
