# caught by: same_parameters, own_random_numbers
"""The model also draws from numpy and random, and ranks that inherit one state there draw alike."""


def same_start(build, seed):
    torch.manual_seed(seed)
    model = build()
    torch.manual_seed(seed + 1)
    return model
