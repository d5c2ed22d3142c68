# caught by: ranks_and_world
"""Gives up on ranks that wait for a download."""


def start(backend):
    import datetime

    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=5))
    return dist.get_rank(), dist.get_world_size()
