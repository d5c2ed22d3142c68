# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The mean in place of the sum."""


class SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        return values.view_as(values)

    @staticmethod
    def backward(_context, gradient):
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total / dist.get_world_size()
