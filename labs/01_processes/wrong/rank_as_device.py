# caught by: device_of_the_local_rank
"""Right on one machine, and no such GPU on the second."""


def own_device():
    return torch.device("cuda", dist.get_rank()) if torch.cuda.is_available() else torch.device("cpu")
