# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Right where autograd uses the gradient nowhere else."""


class SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(_context, values):
        return values.view_as(values)

    @staticmethod
    def backward(_context, gradient):
        total = gradient.contiguous()
        dist.all_reduce(total)
        return total
