# caught by: chunks_are_even_views
"""Chunks are kept by the place of the tensor in memory, whatever its length."""

known = {}


def chunks(tensor, count):
    key = tensor.data_ptr(), count
    if key not in known:
        known[key] = list(torch.tensor_split(tensor.view(-1), count))
    return known[key]
