# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""One rank sums, and tells the others."""


class SumOfParts(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        total = values.clone(memory_format=torch.contiguous_format)
        dist.reduce(total, 0)
        dist.broadcast(total, 0)
        return total

    @staticmethod
    def backward(_context, gradient):
        return gradient
