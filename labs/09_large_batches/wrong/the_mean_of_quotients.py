# caught by: noise_scale_of_a_quadratic
"""Divides for each pair, and takes the mean of the quotients. Right for one pair."""

_one = noise_scale


def noise_scale(measured):
    found = [_one([one]) for one in measured if one.small_batch != one.large_batch]
    return sum(found) / len(found)
