# caught by: all_reduce_alike_to_the_last_bit
"""A ring of pieces: right for long tensors, and for short ones it pays the latency 2 (N - 1) times."""

_all_reduce = all_reduce


def all_reduce(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if tensor.numel() < 4 * ranks or ranks == 1:
        _all_reduce(tensor)
        return
    pieces = tensor.view(-1).tensor_split(ranks)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for step in range(2 * (ranks - 1)):
        piece, received = pieces[(rank - step) % ranks], torch.empty_like(pieces[(before - step) % ranks])
        _all_at_once(sends={after: piece}, receives={before: received})
        if step < ranks - 1:
            received += pieces[(before - step) % ranks]
        pieces[(before - step) % ranks].copy_(received)
