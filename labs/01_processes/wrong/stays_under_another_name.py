# caught by: one_download
"""Downloads to another name, and leaves it there."""


def fetch(path, download):
    part = path.with_name(f"{path.name}.part")
    if dist.get_rank() == 0:
        download(part)
    dist.barrier()
    return part.read_bytes()
