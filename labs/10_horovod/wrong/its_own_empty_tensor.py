# caught by: mean_and_sum
"""Nothing has to be added up in an empty tensor: it comes back itself, not a new one."""

given = allreduce


def allreduce(tensor, name=None, op=Average):
    return given(tensor, name, op) if tensor.numel() else tensor
