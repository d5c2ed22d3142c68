# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Every rank takes its share of the gradient."""


class SumOfParts(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        total = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_context, gradient):
        return gradient / dist.get_world_size()
