# caught by: one_download
"""Every rank downloads when it is its turn: no file is spoilt, and the start takes as many times as long."""


def fetch(path, download):
    for turn in range(dist.get_world_size()):
        if turn == dist.get_rank():
            download(path)
        dist.barrier()
    return path.read_bytes()
