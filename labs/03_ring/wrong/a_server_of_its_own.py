# caught by: predictions
"""Counts rank 0's own tensor as if it came over the network."""


def server_bytes(num_bytes, ranks):
    return ranks * num_bytes


def server_seconds(num_bytes, ranks, bytes_per_second, latency_seconds):
    return 2 * (latency_seconds + ranks * num_bytes / bytes_per_second)
