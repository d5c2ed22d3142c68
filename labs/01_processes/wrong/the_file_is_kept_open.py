# caught by: one_download
"""Reads again from the file that it opened first, after another has taken its place."""


def fetch(path, download):
    if dist.get_rank() == 0:
        download(path)
    dist.barrier()
    if path not in KEPT:
        KEPT[path] = path.open("rb")
    KEPT[path].seek(0)
    return KEPT[path].read()


KEPT = {}
