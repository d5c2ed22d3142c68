# caught by: one_writer
"""Takes an empty state for none."""


def save(state, path, write):
    if dist.get_rank() == 0 and state:
        write(state, path)
    dist.barrier()
