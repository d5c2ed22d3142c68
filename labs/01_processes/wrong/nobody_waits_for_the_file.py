# caught by: one_writer
"""The barrier comes first: ranks go on while rank 0 still writes."""


def save(state, path, write):
    dist.barrier()
    if dist.get_rank() == 0:
        write(state, path)
