# caught by: frozen_and_tied
"""A rank whose batch gave no gradient at all returns at once, and the others wait for it."""

whole = average_gradients


def average_gradients(model, samples):
    trained = [one for one in model.parameters() if one.requires_grad]
    if any(one.grad is not None for one in trained):
        whole(model, samples)
