# caught by: shift_without_deadlock
"""A rank that is alone is its own neighbour."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(tensor)
    _all_at_once(sends={(rank + 1) % ranks: tensor}, receives={(rank - 1) % ranks: received})
    return received
