# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The part of a frozen weight or bias is trained."""


class ColumnLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(len(weight))
        self.weight = nn.Parameter(weight.detach()[own].clone())
        self.bias = None if bias is None else nn.Parameter(bias.detach()[own].clone())

    def forward(self, inputs):
        outputs = functional.linear(SumOfGradients.apply(inputs), self.weight)
        return outputs if self.bias is None else outputs + self.bias
