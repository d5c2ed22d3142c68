# caught by: places
"""One process alone joins nobody."""


def init():
    if not dist.is_initialized() and int(os.environ["WORLD_SIZE"]) > 1:
        dist.init_process_group()


def rank():
    return dist.get_rank() if dist.is_initialized() else 0


def size():
    return dist.get_world_size() if dist.is_initialized() else 1
