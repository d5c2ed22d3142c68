# caught by: predictions
"""Eight times as long."""


def ring_seconds(num_bytes, ranks, bytes_per_second, latency_seconds):
    return 2 * (ranks - 1) * (latency_seconds + 8 * num_bytes / ranks / bytes_per_second)
