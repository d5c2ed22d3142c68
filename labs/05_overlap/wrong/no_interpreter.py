# caught by: prediction_of_data_parallel
"""As if threads could launch at the same time."""


def data_parallel_seconds(devices, forward, backward, model_bytes, bytes_per_second, interpreter):
    return 2 * (devices - 1) * model_bytes / bytes_per_second + max(forward, interpreter) + backward
