# caught by: noise_scale_of_a_quadratic
"""Leaves out pairs whose solution is negative: right on average no more."""

_all = noise_scale


def noise_scale(measured):
    kept = [
        one for one in measured if one.small > one.large and one.large_batch * one.large > one.small_batch * one.small
    ]
    return _all(kept) if kept else _all(measured)
