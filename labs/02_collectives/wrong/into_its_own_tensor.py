# caught by: shift_without_deadlock, all_gather_without_a_centre
"""What it sends is overwritten, perhaps before it has left."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks > 1:
        _all_at_once(sends={(rank + 1) % ranks: tensor}, receives={(rank - 1) % ranks: tensor})
    return tensor
