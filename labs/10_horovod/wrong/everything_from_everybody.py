# caught by: mean_and_sum
"""Gathers all tensors on all ranks and adds them up there."""


def allreduce(tensor, name=None, op=Average):
    tensors = [torch.empty_like(tensor) for _ in range(size())]
    dist.all_gather(tensors, tensor)
    total = sum(tensors)
    return total / size() if op == Average else total
