"""Large batches at constant and at linearly scaled learning rates (Keskar et al. 2017; Goyal et al. 2017).

Plain SGD on digits for ten epochs, two of them warm-up. Article 003_b5f69825a7cf0271.txt does the same on CIFAR-10.

Digits show: at a constant rate a large batch ends worse after the same epochs, since it makes fewer updates. A rate
that grows with the batch closes the gap, until steps are too long for the curvature. Plain SGD cannot stay where
`sharpness` is above 2 / rate. The MLP's sharpness gets to 4 on the way, and the linear rate is 0.32 for 128 samples,
1.28 for 512 and 3.6 for all of them. After as many *updates* the gap is gone.

Digits do not show that large batches generalize worse because they end in sharp minima (Keskar et al.). After the same
epochs the large batch ends where the loss is less curved, because it has hardly left the start. After as many updates
both are as sharp, and as accurate. Neither is near a minimum: the loss falls all along. A comparison of minima takes
harder data and longer training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distsim.learning.curve import Curve
from distsim.learning.delays import plain
from distsim.learning.experiments.batch_size import EPOCHS, Model, updates_per_epoch
from distsim.learning.optimizers import Sgd
from distsim.learning.rates import Scaling, scaled, warm_up
from distsim.learning.replay import replay
from distsim.learning.sharpness import sharpness
from distsim.learning.torch_model import TorchModel

WARM_UP_EPOCHS = 2
SMALL, RATE = 8, 0.02
LARGE = (128, 256, 512, 1437)  # the last: all samples at once


def train(
    model: Model, batch: int, seed: int, scaling: Scaling = "constant", updates: int | None = None, points: int = 1
) -> Curve:
    """One run at an effective batch of `batch`, for ten epochs or for so many updates.

    >>> curve = train("mlp", batch=512, seed=1000)
    >>> int(curve.update[-1]), curve.accuracy[-1] < 0.5    # 3 updates in each of 10 epochs
    (30, np.True_)
    """
    objective = TorchModel.of(model)
    per_epoch = updates_per_epoch(objective.samples, batch)
    count = EPOCHS * per_epoch if updates is None else updates
    rate = warm_up(scaled(RATE, batch, SMALL, scaling), WARM_UP_EPOCHS * per_epoch)
    return replay(plain(count, batch, seed), objective, Sgd(rate), points=points)


def accuracies(
    model: Model, batch: int, seeds: Sequence[int], scaling: Scaling = "constant", updates: int | None = None
) -> NDArray[np.float64]:
    """The share of the test images that each run classifies rightly at its end."""
    return np.array([train(model, batch, seed, scaling, updates).accuracy[-1] for seed in seeds])


def recovered(model: Model, batches: Sequence[int], seeds: Sequence[int]) -> NDArray[np.float64]:
    """Which share of the gap between small and large batches linear scaling closes; shape (batches, seeds)."""
    small = accuracies(model, SMALL, seeds)
    constant, scaled_up = (
        np.array([accuracies(model, batch, seeds, scaling) for batch in batches]) for scaling in ("constant", "linear")
    )
    shares: NDArray[np.float64] = (scaled_up - constant) / (small - constant)
    return shares


def sharpnesses(model: Model, batch: int, seeds: Sequence[int], updates: int | None = None) -> NDArray[np.float64]:
    """The steepest curvature where each run at a constant rate has ended."""
    objective = TorchModel.of(model)
    ends = [train(model, batch, seed, updates=updates).parameters for seed in seeds]
    return np.array([sharpness(objective, end) for end in ends])
