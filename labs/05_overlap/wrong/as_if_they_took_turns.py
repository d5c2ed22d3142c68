# caught by: prediction_of_data_parallel
"""The interpreter is held for launching, not while a device computes."""


def data_parallel_seconds(devices, forward, backward, model_bytes, bytes_per_second, interpreter):
    return 2 * (devices - 1) * model_bytes / bytes_per_second + devices * (forward + backward)
