# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""A gradient of the batch is computed and summed, and then dropped."""


class ColumnLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(len(weight))
        self.weight = nn.Parameter(weight.detach()[own].clone(), weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach()[own].clone(), bias.requires_grad)

    def forward(self, inputs):
        outputs = functional.linear(
            SumOfGradients.apply(inputs if inputs.requires_grad else inputs.detach().requires_grad_()), self.weight
        )
        return outputs if self.bias is None else outputs + self.bias
