# caught by: the_ring_sums
"""A rank on its own sends to itself."""


def ring_all_reduce(tensor):
    parts = chunks(tensor, dist.get_world_size())
    if len(parts) == 1:
        _shift(parts[0].clone(), parts[0])
    reduce_scatter(parts)
    all_gather(parts)
