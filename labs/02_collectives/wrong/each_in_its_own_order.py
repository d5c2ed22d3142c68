# caught by: all_reduce_alike_to_the_last_bit
"""Right but for the last bits, in which the ranks drift apart."""


def all_reduce(tensor):
    travelling = tensor.clone()
    for _ in range(1, dist.get_world_size()):
        travelling = shift(travelling)
        tensor += travelling
