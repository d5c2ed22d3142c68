"""Models, data and losses of all real runs.

mlp            64-64-10 with ReLU, on digits
cnn            8 and 16 filters of 3 x 3, a maximum over 2 x 2, 10 outputs, on digits
transformer    blocks of attention and a perceptron, which learn to repeat a made-up sequence one token later

Models are `nn.Sequential`s whose children with parameters are the layers that `distsim.workload` counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import nn

from distsim.errors import InputError
from distsim.learning.digits import digits as images
from distsim.random_streams import Purpose, stream
from distsim.workload import HEADS, TOKENS, TRAINING_SAMPLES, Workload

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Data:
    """Samples along the first dimension of each tensor."""

    inputs: torch.Tensor
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True)
class Problem:
    """A model, the data it learns from, and its loss: the mean over the samples of a batch."""

    model: nn.Sequential
    training: Data
    loss: Loss

    @property
    def layers(self) -> list[nn.Module]:
        """The parts of the model that have parameters, first layer first."""
        return [child for child in self.model if any(True for _ in child.parameters())]

    def loss_of(self, samples: torch.Tensor) -> torch.Tensor:
        """The loss on the training samples with these numbers: a scalar, from which `backward` may start."""
        return self.loss(self.model(self.training.inputs[samples]), self.training.targets[samples])


def problem(workload: Workload, seed: int = 0) -> Problem:
    """The problem that `workload.model` names; the same seed gives the same parameters.

    Raises InputError where the workload has no model, or scikit-learn is missing.

    >>> found = problem(Workload(model="mlp"))
    >>> len(found.layers), len(found.training)
    (2, 1437)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        match workload.model:
            case "mlp":
                return Problem(mlp(), digits()[0], nn.functional.cross_entropy)
            case "cnn":
                return Problem(cnn(), digits()[0], nn.functional.cross_entropy)
            case "transformer":
                blocks = transformer(workload.layers, workload.width)
                return Problem(blocks, sequences(workload.width), nn.functional.mse_loss)
    raise InputError.of("workload.model", workload.model, "names no model", 'write model = "mlp"')


def mlp() -> nn.Sequential:
    """64 pixels, 64 hidden units, 10 classes."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn() -> nn.Sequential:
    """Two convolutions that keep the 8 x 8 pixels, a maximum over 2 x 2 of them, 10 classes."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def transformer(blocks: int, width: int) -> nn.Sequential:
    """Blocks that each keep the shape (samples, tokens, width)."""
    return nn.Sequential(
        *(
            nn.TransformerEncoderLayer(width, HEADS, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(blocks)
        )
    )


@cache
def digits() -> tuple[Data, Data]:
    """scikit-learn's digits as tensors, to train and to test with. Raises InputError where scikit-learn is missing."""
    training, test = (Data(torch.from_numpy(part.pixels), torch.from_numpy(part.classes)) for part in images())
    return training, test


@cache
def sequences(width: int) -> Data:
    """Sequences of random tokens; the targets are the same, one token later."""
    shape = (TRAINING_SAMPLES["transformer"], TOKENS, width)
    inputs = torch.from_numpy(stream(0, Purpose.DATA, 0).standard_normal(shape, dtype=np.float32))
    return Data(inputs, inputs.roll(1, dims=1))
