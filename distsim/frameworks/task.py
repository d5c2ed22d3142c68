"""What the four ways share: the data, the network, the rate, and the record of each update."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset, TensorDataset

from distsim.learning.problems import digits, mlp

BATCH = 16  # samples of each rank
RATE = 0.1
SEED = 0  # of the first parameters, and of the order of the samples


def training_set() -> Dataset[tuple[Tensor, ...]]:
    """The digits to learn from."""
    training, _ = digits()
    return TensorDataset(training.inputs, training.targets)


def network() -> nn.Module:
    """The network, with the same first parameters on each rank and in each way."""
    torch.manual_seed(SEED)
    return mlp()


@dataclass
class Record:
    """What one rank notes: the loss of each update, and the moment at which the update ended.

    final_loss: after the last update, over all training samples.
    """

    losses: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    parameters: list[float] = field(default_factory=list)
    final_loss: float = 0.0

    def update(self, loss: Tensor) -> None:
        """Notes an update that has just ended."""
        self.losses.append(loss.item())
        self.ends.append(time.perf_counter())

    def finish(self, model: nn.Module) -> None:
        """Notes the parameters after the last update, and the loss that they give."""
        training, _ = digits()
        with torch.no_grad():
            self.final_loss = cross_entropy(model(training.inputs), training.targets).item()
        self.parameters = torch.cat([part.detach().flatten() for part in model.parameters()]).tolist()


def told(train: Callable[[int, Record], None], updates: int) -> None:
    """Trains as one rank, with one thread, then prints the record as JSON."""
    torch.set_num_threads(1)
    record = Record()
    train(updates, record)
    print(json.dumps(asdict(record)))
