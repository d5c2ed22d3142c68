# caught by: one_writer
"""Several ranks write one file."""


def save(state, path, write):
    write(state, path)
    dist.barrier()
