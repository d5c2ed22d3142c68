# caught by: mean_and_sum
"""Adds tensors of half precision in single precision: twice the bytes travel."""


def allreduce(tensor, name=None, op=Average):
    total = tensor.detach().float() if tensor.dtype == torch.float16 else tensor.detach().clone()
    dist.all_reduce(total)
    return (total / size() if op == Average else total).to(tensor.dtype)
