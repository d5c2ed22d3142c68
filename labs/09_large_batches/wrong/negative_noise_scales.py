# caught by: noise_scale_of_a_quadratic
"""The quotient whatever its sign. Right where the gradient is longer than its error."""


def noise_scale(measured):
    told = [one for one in measured if one.small_batch != one.large_batch]
    noises = [(one.small - one.large) / (1 / one.small_batch - 1 / one.large_batch) for one in told]
    square = sum(one.large - noise / one.large_batch for one, noise in zip(told, noises))
    return sum(noises) / square if square else math.inf
