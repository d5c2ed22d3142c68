# caught by: one_download
"""A sleep in place of a barrier."""

import time


def fetch(path, download):
    if dist.get_rank() == 0:
        download(path)
    else:
        time.sleep(60)
    return path.read_bytes()
