# caught by: predictions
"""Links have a whole number of bytes per second."""


def ring_seconds(num_bytes, ranks, bytes_per_second, latency_seconds):
    return 2 * (ranks - 1) * (latency_seconds + num_bytes / ranks / max(int(bytes_per_second), 1))
