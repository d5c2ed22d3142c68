# caught by: all_reduce_alike_to_the_last_bit
"""Every rank gathers all tensors: N - 1 times the bytes."""


def all_reduce(tensor):
    tensor.copy_(sum(all_gather(tensor)))
