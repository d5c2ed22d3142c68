# caught by: scatter_sends_each_its_piece
"""Each rank is sent all pieces, and takes its own."""


def scatter(pieces, piece, root):
    if pieces is None:
        whole = piece.new_empty(dist.get_world_size(), *piece.shape)
        dist.recv(whole, src=root)
    else:
        whole = torch.stack(pieces)
        _all_at_once(sends={rank: whole for rank in range(len(pieces)) if rank != root})
    piece.copy_(whole[dist.get_rank()])
