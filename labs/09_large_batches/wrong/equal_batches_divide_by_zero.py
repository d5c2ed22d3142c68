# caught by: noise_scale_of_a_quadratic
"""Does not leave out a pair of equal batches. Right as long as there is none."""


def noise_scale(measured):
    noises = [(one.small - one.large) / (1 / one.small_batch - 1 / one.large_batch) for one in measured]
    square = sum(one.large - noise / one.large_batch for one, noise in zip(measured, noises))
    return max(sum(noises) / square, 0.0) if square > 0 else math.inf
