"""Runs at a grid of batches and learning rates, with plain SGD on digits.

N workers with batches of b have the effective batch B = N x b. One process with batches of B computes the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from distsim.errors import InputError
from distsim.learning.curve import Curve
from distsim.learning.delays import plain
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel

EPOCHS = 10
Model = Literal["mlp", "cnn"]
TARGET = 0.3  # loss over all samples
# By batch, the learning rate of those tried, each twice the one before, at which the MLP needs the fewest updates to
# TARGET on the average of ten seeds.
BEST_RATES = {2: 0.16, 8: 0.32, 32: 0.64, 128: 1.28, 512: 1.28, 1437: 1.28}


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


def updates_to_target(
    model: Model, batch: int, rate: float, seeds: Sequence[int], target: float = TARGET, most: int = 1000
) -> list[int]:
    """The updates after which each run's loss over all samples is at most `target`, as exact as one update.

    Raises InputError where a run does not get there in `most` updates.

    >>> updates_to_target("mlp", batch=512, rate=1.28, seeds=[1000, 2000])
    [42, 45]
    """
    objective = TorchModel.of(model)
    found = []
    for seed in seeds:
        curve = replay(plain(most, batch, seed), objective, Sgd(rate), points=most, target=target)
        if not curve.loss[-1] <= target:
            raise InputError.of(
                "rate", rate, f"leads seed {seed} to no loss of {target} in {most} updates",
                "take a smaller one, or give more updates",
            )  # fmt: skip
        found.append(int(curve.update[-1]))
    return found
