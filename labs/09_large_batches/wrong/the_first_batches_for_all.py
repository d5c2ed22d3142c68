# caught by: noise_scale_of_a_quadratic
"""Takes the batches of the first pair for all pairs. Right for batches of one size."""

_each = noise_scale


def noise_scale(measured):
    first = next(one for one in measured if one.small_batch != one.large_batch)
    return _each([Squares(first.small_batch, one.small, first.large_batch, one.large) for one in measured])
