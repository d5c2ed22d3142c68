# caught by: scatter_sends_each_its_piece, all_reduce_alike_to_the_last_bit
"""The tensor gets another memory; what else the caller has in the memory that was given stays as it was."""

_scatter, _all_reduce = scatter, all_reduce


def scatter(pieces, piece, root):
    received = torch.empty_like(piece)
    _scatter(pieces, received, root)
    piece.data = received


def all_reduce(tensor):
    total = tensor.clone()
    _all_reduce(total)
    tensor.data = total
