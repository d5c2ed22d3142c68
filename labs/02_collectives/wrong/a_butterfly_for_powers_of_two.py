# caught by: all_reduce_alike_to_the_last_bit
"""Partners that there are not."""


def all_reduce(tensor):
    other = torch.empty_like(tensor)
    for distance in _doubling(dist.get_world_size()):
        partner = dist.get_rank() ^ distance
        _all_at_once(sends={partner: tensor}, receives={partner: other})
        tensor += other
