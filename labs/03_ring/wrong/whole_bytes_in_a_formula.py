# caught by: predictions
"""Cuts off what is left over, which a formula need not."""


def ring_bytes(num_bytes, ranks):
    return 2 * (ranks - 1) * num_bytes // ranks
