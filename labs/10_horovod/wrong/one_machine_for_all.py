# caught by: places, mean_and_sum, steps_as_one_process, one_exchange_for_each_update, the_training_script
"""The processes of this machine alone are counted."""

import os


def size():
    return int(os.environ["LOCAL_WORLD_SIZE"])
