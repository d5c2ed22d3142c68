# caught by: places
"""A second call, as in a notebook's cell that is run again, fails."""


def init():
    dist.init_process_group()
