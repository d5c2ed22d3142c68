# caught by: chunks_are_even_views
"""Bounds are whole numbers of a length that is rounded: the last number may be lost."""


def chunks(tensor, count):
    flat = tensor.view(-1)
    length = flat.numel() / count
    return [flat[int(number * length) : int((number + 1) * length)] for number in range(count)]
