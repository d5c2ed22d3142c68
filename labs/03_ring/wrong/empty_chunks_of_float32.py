# caught by: chunks_are_even_views
"""Chunks without numbers are new tensors of float32, whatever the tensor has."""

import torch


def chunks(tensor, count):
    flat = tensor.view(-1)
    return [part if part.numel() else torch.empty(0) for part in flat.tensor_split(count)]
