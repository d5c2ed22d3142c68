# caught by: gather_to_the_root_alone
"""A latency for every rank."""


def gather(piece, root):
    if dist.get_rank() != root:
        dist.send(piece, dst=root)
        return None
    pieces = [piece.clone() for _ in range(dist.get_world_size())]
    for rank in range(len(pieces)):
        if rank != root:
            dist.recv(pieces[rank], src=rank)
    return pieces
