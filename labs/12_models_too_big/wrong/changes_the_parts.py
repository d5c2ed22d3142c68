# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The sum takes the place of the part."""


class SumOfParts(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        total = values.detach()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_context, gradient):
        return gradient
