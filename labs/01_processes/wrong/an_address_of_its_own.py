# caught by: ranks_and_world
"""Meets at an address of its own, as in a tutorial: on two machines nobody would come."""


def start(backend):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group(backend)
    return dist.get_rank(), dist.get_world_size()
