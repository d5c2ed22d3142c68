# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Right for inputs of two dimensions."""


class ColumnLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(len(weight))
        self.weight = nn.Parameter(weight.detach()[own].clone(), weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach()[own].clone(), bias.requires_grad)

    def forward(self, inputs):
        outputs = torch.mm(SumOfGradients.apply(inputs), self.weight.t())
        return outputs if self.bias is None else outputs + self.bias
