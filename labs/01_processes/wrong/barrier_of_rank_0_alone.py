# caught by: one_download
"""Only rank 0 comes to the barrier: it waits for ever."""


def fetch(path, download):
    if dist.get_rank() == 0:
        download(path)
        dist.barrier()
    return path.read_bytes()
