# caught by: one_download
"""Takes an empty file for one that has not come yet."""


def fetch(path, download):
    if dist.get_rank() == 0:
        download(path)
    dist.barrier()
    content = b""
    while not content:
        content = path.read_bytes()
    return content
