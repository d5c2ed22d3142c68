# caught by: scatter_sends_each_its_piece
"""Right for root 0."""


def scatter(pieces, piece, root):
    ranks = dist.get_world_size()
    if pieces is None:
        dist.recv(piece, src=root)
        return
    piece.copy_(pieces[0])
    _all_at_once(sends={(root + place) % ranks: pieces[place] for place in range(1, ranks)})
