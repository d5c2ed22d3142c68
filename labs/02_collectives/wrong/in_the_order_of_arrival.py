# caught by: all_gather_without_a_centre
"""Every rank's list begins with its own piece."""


def all_gather(piece):
    pieces = [piece]
    while len(pieces) < dist.get_world_size():
        pieces.append(shift(pieces[-1]))
    return pieces
