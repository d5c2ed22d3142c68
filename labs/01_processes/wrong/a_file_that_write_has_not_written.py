# caught by: one_writer
"""Everybody writes the file without `write`, and rank 0 says that it took its time."""


def save(state, path, write):
    from distsim.testbed import rank

    if dist.get_rank() == 0:
        rank.busy(2.0, "write")
    path.write_text(repr(state["secret"]))
    dist.barrier()
