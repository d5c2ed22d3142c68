# caught by: predictions
"""Right for large tensors and few ranks."""


def ring_seconds(num_bytes, ranks, bytes_per_second, latency_seconds):
    return 2 * (ranks - 1) / ranks * num_bytes / bytes_per_second
