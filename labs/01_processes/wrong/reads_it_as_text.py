# caught by: one_download
"""Reads the file as text, which changes the ends of lines."""


def fetch(path, download):
    if dist.get_rank() == 0:
        download(path)
    dist.barrier()
    return path.read_text(encoding="latin-1").encode("latin-1")
