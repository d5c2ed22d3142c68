"""Models that really compute, as a user brings them: steps of 20 to 300 ms on one core. For tests of predictions."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

CLASSES = 10
Batch = tuple[Tensor, Tensor]


class Classifier(nn.Module):
    """A network, and the loss of a batch."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor, wanted: Tensor) -> Tensor:
        loss: Tensor = nn.functional.cross_entropy(self.network(inputs), wanted)
        return loss


def batch(samples: int, *shape: int) -> Batch:
    return torch.randn(samples, *shape), torch.randint(0, CLASSES, (samples,))


def mlp() -> tuple[nn.Module, Batch]:
    """16 MB of gradients, and little work for each byte."""
    hidden = [layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    network = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), *hidden, nn.Linear(1024, CLASSES))
    return Classifier(network), batch(128, 784)


def cnn() -> tuple[nn.Module, Batch]:
    """0.4 MB of gradients, and much work for each byte."""
    widths = (3, 32, 64, 128)
    layers = [
        layer
        for narrow, wide in pairwise(widths)
        for layer in (nn.Conv2d(narrow, wide, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    ]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], CLASSES))
    return Classifier(network), batch(32, 3, 32, 32)


class Transformer(nn.Module):
    """Blocks of torch's own, and a mean over the tokens."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True) for _ in range(blocks)
        )
        self.out = nn.Linear(width, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        for block in self.blocks:
            tokens = block(tokens)
        found: Tensor = self.out(tokens.mean(dim=1))
        return found


def transformer() -> tuple[nn.Module, Batch]:
    """12.6 MB of gradients."""
    return Classifier(Transformer(256, 4)), batch(4, 32, 256)


class TiedAndFrozen(nn.Module):
    """An autoencoder whose two halves share their weights, behind a frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.code = nn.Linear(1024, 1024), nn.Linear(1024, 512)
        self.frozen.requires_grad_(False)
        self.middle = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
        self.bias = nn.Parameter(torch.zeros(1024))

    def forward(self, inputs: Tensor) -> Tensor:
        fixed = torch.relu(self.frozen(inputs))
        again = nn.functional.linear(self.middle(self.code(fixed)), self.code.weight.T, self.bias)
        return nn.functional.mse_loss(again, fixed)


def tied() -> tuple[nn.Module, tuple[Tensor]]:
    """4 MB of gradients, of shared parameters too; the frozen ones have none."""
    return TiedAndFrozen(), (torch.randn(256, 1024),)
