# caught by: mean_and_sum
"""Sums single precision in double precision: twice the bytes."""

given = allreduce


def allreduce(tensor, name=None, op=Average):
    wide = tensor.double() if tensor.dtype == torch.float32 else tensor
    return given(wide, name, op).to(tensor.dtype)
