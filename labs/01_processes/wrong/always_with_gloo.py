# caught by: ranks_and_world
"""Does not ask which back end was asked for."""


def start(backend):
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()
