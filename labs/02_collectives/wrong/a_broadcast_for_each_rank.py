# caught by: all_gather_without_a_centre
"""N trees one after the other: N ceil(log2 N) messages' time."""


def all_gather(piece):
    pieces = [piece.clone() for _ in range(dist.get_world_size())]
    for root, one in enumerate(pieces):
        broadcast(one, root)
    return pieces
