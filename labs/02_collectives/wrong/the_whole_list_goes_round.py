# caught by: all_gather_without_a_centre
"""Each shift carries all pieces, not one."""


def all_gather(piece):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole = torch.zeros(ranks, *piece.shape, dtype=piece.dtype)
    whole[rank] = piece
    for _ in range(1, ranks):
        whole = shift(whole)
        whole[rank] = piece
    return list(whole)
