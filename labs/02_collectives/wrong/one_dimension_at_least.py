# caught by: gather_to_the_root_alone
"""The rows of a matrix: a single number comes back as a row of one number."""


def gather(piece, root):
    ranks = dist.get_world_size()
    if dist.get_rank() != root:
        dist.send(piece, dst=root)
        return None
    rows = torch.empty((ranks, piece.numel()), dtype=piece.dtype)
    rows[root] = piece.view(-1)
    _all_at_once(receives={rank: row for rank, row in enumerate(rows) if rank != root})
    return [row.view(piece.shape) if piece.dim() > 1 else row for row in rows]
