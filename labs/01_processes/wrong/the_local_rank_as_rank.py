# caught by: one_download
"""Right on one machine; on two, one rank of each downloads."""


def fetch(path, download):
    if int(os.environ["LOCAL_RANK"]) == 0:
        download(path)
    dist.barrier()
    return path.read_bytes()
