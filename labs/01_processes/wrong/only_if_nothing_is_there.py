# caught by: one_download, one_writer
"""Takes any file at that path for the right one."""


def fetch(path, download):
    if dist.get_rank() == 0 and not path.exists():
        download(path)
    dist.barrier()
    return path.read_bytes()


def save(state, path, write):
    if dist.get_rank() == 0 and not path.exists():
        write(state, path)
    dist.barrier()
