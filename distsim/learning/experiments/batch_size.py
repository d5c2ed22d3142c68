"""Runs at a grid of batches and learning rates, with plain SGD on digits.

N workers with batches of b have the effective batch B = N x b. One process with batches of B computes the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from distsim.learning.curve import Curve
from distsim.learning.delays import plain
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel

EPOCHS = 10
Model = Literal["mlp", "cnn"]


def grid(
    model: Model, batches: Sequence[int], rates: Sequence[float], seeds: Sequence[int], epochs: int = EPOCHS
) -> dict[tuple[int, float], list[Curve]]:
    """Runs at each batch and rate, without warm-up, as `distsim.figures.batch_grid` draws them.

    >>> sorted(grid("mlp", batches=[512], rates=[0.1, 1.0], seeds=[1000], epochs=1))
    [(512, 0.1), (512, 1.0)]
    """
    objective = TorchModel.of(model)

    def run(batch: int, rate: float, seed: int) -> Curve:
        updates = epochs * updates_per_epoch(objective.samples, batch)
        return replay(plain(updates, batch, seed), objective, Sgd(rate), points=1)

    return {(batch, rate): [run(batch, rate, seed) for seed in seeds] for batch in batches for rate in rates}


def updates_per_epoch(samples: int, batch: int) -> int:
    """The updates of one pass over the samples; the last batch of an epoch may be smaller.

    >>> updates_per_epoch(1437, 8)
    180
    """
    return -(-samples // batch)
