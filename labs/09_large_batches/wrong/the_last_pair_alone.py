# caught by: noise_scale_of_a_quadratic
"""Takes only the last pair, as if a mean were of no use."""

_mean = noise_scale


def noise_scale(measured):
    return _mean([one for one in measured if one.small_batch != one.large_batch][-1:])
