"""Lab 12, written differently: torch.autograd.grad in place of backward, one forward and one backward, flat memory."""

import torch
import torch.distributed as dist
from torch import nn


def stage_order(stage, stages, micro_batches, schedule):
    if schedule == "gpipe":
        return [(kind, micro) for kind in ("forward", "backward") for micro in range(micro_batches)]
    pieces, forwards, backwards = [], 0, 0
    while backwards < micro_batches:
        if forwards < micro_batches and forwards - backwards < stages - stage:
            pieces.append(("forward", forwards))
            forwards += 1
        else:
            pieces.append(("backward", backwards))
            backwards += 1
    return pieces


def pipeline_step(part, order, inputs, targets, loss, tied=()):
    stage, stages = dist.get_rank(), dist.get_world_size()
    trained = [parameter for parameter in part.parameters() if parameter.requires_grad]
    samples, losses, state, works = sum(map(len, inputs)), [], {}, []

    def forward(micro):
        entering = inputs[micro]
        if stage:
            entering = torch.empty(entering.shape, dtype=entering.dtype)
            dist.recv(entering, stage - 1)
            entering.requires_grad_()
        result = part(entering)
        if stage == stages - 1:
            result = loss(result, targets[micro]) * len(entering) / samples
            losses.append(result.item())
            state[micro] = entering, result, None
        else:
            sent = result.detach().clone(memory_format=torch.contiguous_format)
            state[micro] = entering, result, dist.isend(sent, stage + 1)

    def backward(micro):
        entering, result, work = state.pop(micro)
        gradient = None
        if work is not None:
            gradient = torch.empty(result.shape, dtype=result.dtype)
            dist.recv(gradient, stage + 1)
            work.wait()
        wanted = trained + ([entering] if stage else [])
        if not wanted:
            return
        found = list(torch.autograd.grad(result, wanted, gradient))
        if stage:
            works.append(dist.isend(found.pop().contiguous(), stage - 1))
        for parameter, one in zip(trained, found):
            parameter.grad = one if parameter.grad is None else parameter.grad + one

    for kind, micro in order:
        forward(micro) if kind == "forward" else backward(micro)
    for work in works:
        work.wait()
    for parameter, group in tied:
        if parameter.requires_grad:
            total = parameter.grad.contiguous()
            dist.all_reduce(total, group=group)
            parameter.grad = total
    return torch.tensor(sum(losses), dtype=inputs[0].dtype) if losses else None


def own_part(size):
    ranks = dist.get_world_size()
    sizes = [len(range(rank, size, ranks)) for rank in range(ranks)]
    first = sum(sizes[: dist.get_rank()])
    return slice(first, first + sizes[dist.get_rank()])


def total(values):
    whole = torch.empty(values.shape, dtype=values.dtype).copy_(values)
    dist.all_reduce(whole)
    return whole


class SumOfGradients(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        return total(gradient)


class SumOfParts(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return total(values)

    @staticmethod
    def backward(context, gradient):
        return gradient


def copied(whole):
    own = torch.empty(whole.shape, dtype=whole.dtype).copy_(whole.data)
    return nn.Parameter(own, requires_grad=whole.requires_grad)


class ColumnLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        self.weight = copied(weight[own_part(weight.shape[0])])
        self.bias = copied(bias[own_part(bias.shape[0])]) if bias is not None else None

    def forward(self, inputs):
        result = SumOfGradients.apply(inputs) @ self.weight.t()
        return result + self.bias if self.bias is not None else result


class RowLinear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        self.weight = copied(weight[:, own_part(weight.shape[1])])
        self.bias = copied(bias) if bias is not None else None

    def forward(self, inputs):
        result = SumOfParts.apply(inputs @ self.weight.t())
        return result + self.bias if self.bias is not None else result


class ShardedAdam:
    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-8):
        self.lr, self.betas, self.eps = lr, betas, eps
        self.trained = []
        for parameter in parameters:
            if parameter.requires_grad and not any(parameter is one for one in self.trained):
                self.trained.append(parameter)
        self.sizes = [len(parameter.reshape(-1)) for parameter in self.trained]
        self.padded = sum(self.sizes) + -sum(self.sizes) % dist.get_world_size()
        self.state = {}
        self.count = 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        ranks = dist.get_world_size()
        gradients, values = (self.trained[0].new_zeros(self.padded) for _ in range(2))
        end = 0
        for parameter, size in zip(self.trained, self.sizes):
            begin, end = end, end + size
            values[begin:end] = parameter.reshape(-1)
            if parameter.grad is not None:
                gradients[begin:end] = parameter.grad.reshape(-1)
        share = self.padded // ranks
        mean = gradients.new_empty(share)
        dist.reduce_scatter_tensor(mean, gradients)
        mean = mean / ranks
        for power, name, beta in ((1, "m", self.betas[0]), (2, "v", self.betas[1])):
            old = self.state.get(name, torch.zeros_like(mean))
            self.state[name] = beta * old + (1 - beta) * mean**power
        m, v = (self.state[name] / (1 - beta**self.count) for name, beta in zip("mv", self.betas))
        own = values[share * dist.get_rank() :][:share] - self.lr * m / (v.sqrt() + self.eps)
        dist.all_gather_into_tensor(values, own)
        end = 0
        for parameter, size in zip(self.trained, self.sizes):
            begin, end = end, end + size
            parameter[...] = values[begin:end].reshape(parameter.shape)
