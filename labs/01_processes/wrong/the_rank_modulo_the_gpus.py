# caught by: device_of_the_local_rank
"""Right where each machine has as many processes as GPUs."""


def own_device():
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
