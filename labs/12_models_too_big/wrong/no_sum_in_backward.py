# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Each rank has its own part of the gradient."""


class SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values.view_as(values)

    @staticmethod
    def backward(context, gradient):
        return gradient
