# caught by: predictions
"""Forgets that a round carries one chunk."""


def ring_bytes(num_bytes, ranks):
    return 2 * (ranks - 1) * num_bytes
