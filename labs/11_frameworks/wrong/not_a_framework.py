# caught by: framework_trains_as_one_process
"""The first port again."""


def train_framework(job):
    return train_ddp(job)
