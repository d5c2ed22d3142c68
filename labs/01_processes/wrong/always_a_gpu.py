# caught by: device_of_the_local_rank
"""Fails where there is none."""


def own_device():
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
