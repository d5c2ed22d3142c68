# caught by: predictions
"""Counts the rounds of reduce-scatter alone."""


def ring_seconds(num_bytes, ranks, bytes_per_second, latency_seconds):
    return (ranks - 1) * (latency_seconds + num_bytes / ranks / bytes_per_second)
