# caught by: gather_to_the_root_alone
"""A list that has one tensor many times."""


def gather(piece, root):
    if dist.get_rank() != root:
        dist.send(piece, dst=root)
        return None
    pieces = [piece.clone()] * dist.get_world_size()
    _all_at_once(receives={rank: one for rank, one in enumerate(pieces) if rank != root})
    return pieces
