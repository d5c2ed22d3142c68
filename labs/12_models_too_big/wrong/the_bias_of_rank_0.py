# caught by: split_layers_as_one_process, one_all_reduce_each_way
"""Rank 0 alone adds the bias, so it alone trains it."""


class RowLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        own = own_part(weight.shape[1])
        self.weight = nn.Parameter(weight.detach()[:, own].clone(), weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)

    def forward(self, inputs):
        bias = None if dist.get_rank() else self.bias
        return SumOfParts.apply(functional.linear(inputs, self.weight, bias))
