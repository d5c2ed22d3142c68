# caught by: noise_scale_of_a_quadratic
"""|G|^2 / V."""

_scale = noise_scale


def noise_scale(measured):
    found = _scale(measured)
    return 1 / found if found else math.inf
