# caught by: places, the_training_script
"""Leaves it to whoever starts the processes."""


def init():
    pass
