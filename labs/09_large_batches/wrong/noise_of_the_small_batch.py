# caught by: noise_scale_of_a_quadratic
"""The square of the large batch is taken for that of the mean gradient. Right for very large batches."""


def noise_scale(measured):
    told = [one for one in measured if one.small_batch != one.large_batch]
    noise = sum((one.small - one.large) / (1 / one.small_batch - 1 / one.large_batch) for one in told)
    square = sum(one.large for one in told)
    return max(noise / square, 0.0) if square > 0 else math.inf
