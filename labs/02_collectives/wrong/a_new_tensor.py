# caught by: all_reduce_alike_to_the_last_bit
"""The caller's tensor stays as it was."""


def all_reduce(tensor):
    total = reduce(tensor, root=0)
    total = torch.empty_like(tensor) if total is None else total
    broadcast(total, root=0)
    return total
