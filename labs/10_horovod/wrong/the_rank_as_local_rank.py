# caught by: places
"""Right as long as there is one machine."""


def local_rank():
    return dist.get_rank()
