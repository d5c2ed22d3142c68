# caught by: one_download
"""Four downloads into one file, at the same time."""


def fetch(path, download):
    download(path)
    dist.barrier()
    return path.read_bytes()
