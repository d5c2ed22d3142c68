# caught by: same_parameters
"""The same on every rank, and not the one that was asked for."""


def same_start(build, seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(4, 3)
    _seed_all(seed + 1 + dist.get_rank())
    return model
