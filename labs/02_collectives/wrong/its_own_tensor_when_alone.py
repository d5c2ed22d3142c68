# caught by: shift_without_deadlock
"""With one rank, the caller gets back the tensor that it goes on to change."""


def shift(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks == 1:
        return tensor
    received = torch.empty_like(tensor)
    _all_at_once(sends={(rank + 1) % ranks: tensor}, receives={(rank - 1) % ranks: received})
    return received
