# caught by: gather_to_the_root_alone
"""Every rank sends its piece to every other one, and all but one throw it away."""


def gather(piece, root):
    pieces = all_gather(piece)
    return pieces if dist.get_rank() == root else None
