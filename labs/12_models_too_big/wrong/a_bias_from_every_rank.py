# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""The sum has the bias once for each rank: right for one rank, and without a bias."""


class RowLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(weight.shape[1])
        self.weight = nn.Parameter(weight.detach()[:, own].clone(), weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)

    def forward(self, inputs):
        return SumOfParts.apply(functional.linear(inputs, self.weight, self.bias))
