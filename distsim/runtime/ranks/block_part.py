"""A worker's part of a transformer's block: some heads and some hidden units.

A block's half, attention or the perceptron, begins with columns of a matrix and ends with the rows that go with them,
so each worker gets a part of the half's result. Two functions stand around a half:

together    forward: the workers' results are summed; backward: the gradient of the sum goes to each of them.
to_all      forward: each worker takes the whole input; backward: the workers' gradients of it are summed.

Norms and the biases behind a sum are the same at all workers, which have the same gradients of them.
Source: Shoeybi et al. 2019, Megatron-LM (arXiv 1909.08053), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from distsim.workload import HEADS

Sum = Callable[[torch.Tensor], torch.Tensor]  # over the workers, in a tensor of its own


class Together(torch.autograd.Function):
    """`together` above."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, total: Sum) -> torch.Tensor:  # noqa: ARG004 - torch gives it
        """The sum over the workers."""
        return total(values)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # noqa: ARG004 - torch gives it
        """The same gradient for each worker."""
        return gradient, None


class ToAll(torch.autograd.Function):
    """`to_all` above."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, total: Sum) -> torch.Tensor:
        """The same values."""
        ctx.total = total
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The sum of the workers' gradients."""
        return ctx.total(gradient), None


def _part(count: int, worker: int, workers: int) -> slice:
    """A worker's share of `count` things.

    >>> [_part(4, worker, 3) for worker in range(3)]
    [slice(0, 1, None), slice(1, 2, None), slice(2, 4, None)]
    """
    return slice(worker * count // workers, (worker + 1) * count // workers)


def _own(values: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(values.detach().clone())


class BlockPart(nn.Module):
    """A worker's part of one block of `learning.problems.transformer`; the results of all parts together are its own.

    total: sums a tensor over the workers; called twice in forward and twice in backward.
    """

    def __init__(self, block: nn.TransformerEncoderLayer, worker: int, workers: int, total: Sum) -> None:
        super().__init__()
        self._total = total
        attention, width = block.self_attn, block.self_attn.embed_dim
        self._head_width = width // HEADS
        heads = _part(HEADS, worker, workers)
        self._heads = heads.stop - heads.start
        columns = slice(heads.start * self._head_width, heads.stop * self._head_width)
        hidden = _part(block.linear1.out_features, worker, workers)
        self.first_norm, self.second_norm = block.norm1, block.norm2
        self.query_key_value = _own(attention.in_proj_weight.view(3, width, width)[:, columns].flatten(0, 1))
        self.query_key_value_bias = _own(attention.in_proj_bias.view(3, width)[:, columns].flatten())
        self.attended, self.attended_bias = _own(attention.out_proj.weight[:, columns]), _own(attention.out_proj.bias)
        self.widened, self.widened_bias = _own(block.linear1.weight[hidden]), _own(block.linear1.bias[hidden])
        self.narrowed, self.narrowed_bias = _own(block.linear2.weight[:, hidden]), _own(block.linear2.bias)

    def whole_parameters(self) -> Iterator[nn.Parameter]:
        """Those that all workers have whole."""
        yield from self.first_norm.parameters()
        yield from self.second_norm.parameters()
        yield from (self.attended_bias, self.narrowed_bias)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The block's output, of shape (samples, tokens, width) as its input."""
        values = values + self.attended_bias + self._together(self._attention(self._to_all(self.first_norm(values))))
        return values + self.narrowed_bias + self._together(self._perceptron(self._to_all(self.second_norm(values))))

    def _attention(self, values: torch.Tensor) -> torch.Tensor:
        samples, tokens, _ = values.shape
        found = functional.linear(values, self.query_key_value, self.query_key_value_bias)
        query, key, value = found.view(samples, tokens, 3, self._heads, self._head_width).permute(2, 0, 3, 1, 4)
        heads = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        return functional.linear(heads, self.attended)

    def _perceptron(self, values: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(functional.linear(values, self.widened, self.widened_bias))
        return functional.linear(hidden, self.narrowed)

    def _together(self, values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = Together.apply(values, self._total)  # type: ignore[no-untyped-call] # torch
        return found

    def _to_all(self, values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = ToAll.apply(values, self._total)  # type: ignore[no-untyped-call] # torch
        return found
