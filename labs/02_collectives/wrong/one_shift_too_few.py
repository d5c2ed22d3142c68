# caught by: all_gather_without_a_centre
"""The next rank's piece never comes all the way."""


def all_gather(piece):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    pieces = [piece.clone() for _ in range(ranks)]
    for steps in range(1, ranks - 1):
        pieces[(rank - steps) % ranks] = shift(pieces[(rank - steps + 1) % ranks])
    return pieces
