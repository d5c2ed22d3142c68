# caught by: places
"""The processes of this machine alone are counted."""

import os


def size():
    return int(os.environ["LOCAL_WORLD_SIZE"])
