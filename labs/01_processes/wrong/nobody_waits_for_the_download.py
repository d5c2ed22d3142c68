# caught by: one_download
"""The others read while rank 0 still downloads."""


def fetch(path, download):
    if dist.get_rank() == 0:
        download(path)
    while not path.exists():
        pass
    return path.read_bytes()
