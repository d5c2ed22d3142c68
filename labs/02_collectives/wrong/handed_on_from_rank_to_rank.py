# caught by: scatter_sends_each_its_piece
"""Pieces go round the ring: ranks carry what is not theirs."""


def scatter(pieces, piece, root):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    place = (rank - root) % ranks
    if pieces is not None:
        rest = torch.stack([pieces[(root + other) % ranks] for other in range(ranks)])
    else:
        rest = piece.new_empty(ranks - place, *piece.shape)
        dist.recv(rest, src=(rank - 1) % ranks)
    piece.copy_(rest[0])
    if place < ranks - 1:
        dist.send(rest[1:].contiguous(), dst=(rank + 1) % ranks)
