# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Only floating-point numbers go around the ring."""


def ring_all_reduce(tensor):
    if not tensor.is_floating_point():
        server_all_reduce(tensor)
        return
    parts = chunks(tensor, dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)
