# caught by: all_gather_without_a_centre
"""Rank 0 gathers, and sends everything to everybody."""


def all_gather(piece):
    pieces = gather(piece, root=0)
    whole = piece.new_empty(dist.get_world_size(), *piece.shape) if pieces is None else torch.stack(pieces)
    broadcast(whole, root=0)
    return list(whole)
