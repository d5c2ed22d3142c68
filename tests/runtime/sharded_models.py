"""Models for tests of sharded training: parameters that are shared, frozen, or used far from their own module."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

TOKENS = 50


class Tied(nn.Module):
    """Two layers of an LSTM between an embedding and an output that share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(TOKENS, 24), nn.Linear(24, TOKENS, bias=False)
        self.out.weight = self.embed.weight
        self.lstm = nn.LSTM(24, 24, num_layers=2, batch_first=True)
        self.scale = nn.Parameter(torch.ones(24))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.embed(tokens))
        found = self.out(hidden * self.scale)[:, :-1]
        loss: Tensor = nn.functional.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten())
        return loss


def tied() -> tuple[nn.Module, tuple[Tensor]]:
    return Tied(), (torch.randint(0, TOKENS, (4, 9)),)


class Branches(nn.Module):
    """Two branches behind a frozen layer, with the weights of a layer that comes later; odd sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.left, self.right = nn.Linear(33, 33), nn.Linear(33, 17), nn.Linear(33, 17)
        self.frozen.requires_grad_(False)
        self.norm, self.back = nn.BatchNorm1d(17), nn.Linear(17, 33)
        self.bias = nn.Parameter(torch.zeros(33))

    def forward(self, inputs: Tensor) -> Tensor:
        fixed = torch.relu(self.frozen(inputs))
        hidden = self.right(fixed).tanh() * self.left(fixed) + nn.functional.linear(fixed, self.back.weight.T)
        return nn.functional.mse_loss(self.back(self.norm(hidden)) + self.bias, fixed)


def branches() -> tuple[nn.Module, tuple[Tensor]]:
    return Branches(), (torch.randn(16, 33),)


class Sequence(nn.Module):
    """Layers one after the other, of unequal odd sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(31, w), nn.Tanh(), nn.Linear(w, 31)) for w in (7, 43, 19))
        )

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.layers(inputs), inputs.roll(1))


def sequence() -> tuple[nn.Module, tuple[Tensor]]:
    return Sequence(), (torch.randn(8, 31),)


class Recomputed(Sequence):
    """The same layers, two and one, whose activations backward recomputes: it needs the parameters of two at once."""

    def forward(self, inputs: Tensor) -> Tensor:
        first, second, third = self.layers
        hidden = checkpoint(nn.Sequential(first, second), inputs, use_reentrant=False)
        hidden = checkpoint(third, hidden, use_reentrant=False)
        return nn.functional.mse_loss(hidden, inputs.roll(1))


def recomputed() -> tuple[nn.Module, tuple[Tensor]]:
    return Recomputed(), (torch.randn(8, 31),)


class Sparse(nn.Module):
    """An embedding whose gradient is a sparse tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(TOKENS, 24, sparse=True), nn.Linear(24, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.out(self.embed(tokens)).flatten(0, 1), tokens.roll(1).flatten())


def sparse() -> tuple[nn.Module, tuple[Tensor]]:
    return Sparse(), (torch.randint(0, TOKENS, (4, 9)),)


class Fickle(nn.Module):
    """Calls one layer more from the third forward on."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.calls = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.calls += 1
        found = self.second(self.first(inputs))
        if self.calls > 20:
            found = self.first(found)
        return nn.functional.mse_loss(found, inputs)


def fickle() -> tuple[nn.Module, tuple[Tensor]]:
    return Fickle(), (torch.randn(4, 8),)
