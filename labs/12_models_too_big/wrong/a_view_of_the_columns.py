# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The part of a row layer is a view, which keeps the whole weight in memory."""


class RowLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(weight.shape[1])
        self.weight = nn.Parameter(weight.detach()[:, own], weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)

    def forward(self, inputs):
        outputs = SumOfParts.apply(functional.linear(inputs, self.weight))
        return outputs if self.bias is None else outputs + self.bias
