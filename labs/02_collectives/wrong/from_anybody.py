# caught by: gather_to_the_root_alone
"""Takes pieces as they come: two of one rank, where another is late."""


def gather(piece, root):
    if dist.get_rank() != root:
        dist.send(piece, dst=root)
        return None
    pieces = [piece.clone() for _ in range(dist.get_world_size())]
    for _ in range(len(pieces) - 1):
        received = torch.empty_like(piece)
        pieces[dist.recv(received)] = received
    return pieces
