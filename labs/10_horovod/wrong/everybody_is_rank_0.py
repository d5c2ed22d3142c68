# caught by: places, optimizer_state_of_the_root, the_training_script
"""Right with one process: everybody believes to be the first."""


def rank():
    return 0
