# caught by: scatter_sends_each_its_piece
"""The root's own piece stays empty."""


def scatter(pieces, piece, root):
    if pieces is None:
        dist.recv(piece, src=root)
    else:
        _all_at_once(sends={rank: one for rank, one in enumerate(pieces) if rank != root})
