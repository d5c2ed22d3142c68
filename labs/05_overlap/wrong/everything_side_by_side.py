# caught by: prediction_of_data_parallel
"""Copies that do not share a link."""


def data_parallel_seconds(devices, forward, backward, model_bytes, bytes_per_second, interpreter):
    copies = model_bytes / bytes_per_second if devices > 1 else 0.0
    return copies + max(forward, devices * interpreter) + backward + copies
