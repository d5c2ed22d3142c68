# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The backward of a sum sums again, as that of torch.distributed.nn does."""


class SumOfParts(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        total = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_context, gradient):
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total
