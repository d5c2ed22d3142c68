# caught by: scatter_sends_each_its_piece
"""Waits for rank 0, whoever has the pieces."""


def scatter(pieces, piece, root):
    if pieces is None:
        dist.recv(piece, src=0)
        return
    piece.copy_(pieces[dist.get_rank()])
    _all_at_once(sends={rank: one for rank, one in enumerate(pieces) if rank != dist.get_rank()})
