# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Everybody gets everything, and sums it."""


class SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        return values.view_as(values)

    @staticmethod
    def backward(_context, gradient):
        total = gradient.clone(memory_format=torch.contiguous_format)
        parts = [torch.empty_like(total) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, total)
        return sum(parts)
