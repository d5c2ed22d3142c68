# caught by: same_parameters, own_random_numbers
"""Writes the seed over what `build` has drawn."""


def same_start(build, seed):
    model = build()
    with torch.no_grad():
        model.weight.fill_(seed)
        model.bias[:2] = seed
    return model
