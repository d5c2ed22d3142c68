# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""A parameter that takes the weight's place is not used: right without tied layers."""


class ColumnLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(len(weight))
        self.weight = nn.Parameter(weight.detach()[own].clone(), weight.requires_grad)
        self.part = [self.weight]
        self.bias = None if bias is None else nn.Parameter(bias.detach()[own].clone(), bias.requires_grad)

    def forward(self, inputs):
        outputs = functional.linear(SumOfGradients.apply(inputs), self.part[0])
        return outputs if self.bias is None else outputs + self.bias
