# caught by: scatter_sends_each_its_piece
"""The root waits for each piece to arrive: a latency for every rank."""


def scatter(pieces, piece, root):
    if pieces is None:
        dist.recv(piece, src=root)
        return
    piece.copy_(pieces[root])
    for rank, one in enumerate(pieces):
        if rank != root:
            dist.send(one, dst=rank)
