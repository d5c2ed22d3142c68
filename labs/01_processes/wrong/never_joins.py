# caught by: ranks_and_world
"""Reads the environment, and is on its own."""


def start(backend):
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
