"""The gradient noise scale: up to which batch a larger batch saves updates.

One sample's gradient is G + noise, with |G|^2 the squared length of the mean gradient, and V the noise's variance,
summed over all parameters. The mean of B gradients has the squared length |G|^2 + V / B, on average. The noise scale is
B_noise = V / |G|^2: at this batch noise and gradient are equally long.
Source: McCandlish et al. 2018, An empirical model of large-batch training (arXiv 1812.06162).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from distsim.errors import InputError
from distsim.theory.arguments import above, at_least


def updates_to_target(least_updates: float, noise_scale: float, batch: ArrayLike) -> np.ndarray:
    """Updates to a loss, if each update makes the best of its batch: S_min (1 + B_noise / B), shaped as `batch`.

    Far below the noise scale, doubling the batch halves the updates. Far above, it saves none. At the noise scale
    twice the least updates are needed, and twice the least samples.

    least_updates: S_min, with the gradient of all samples. noise_scale: B_noise. batch: B, one or several.

    >>> updates_to_target(100.0, noise_scale=32.0, batch=[1, 32, 3200]).tolist()
    [3300.0, 200.0, 101.0]
    """
    above(0, least_updates=least_updates)
    at_least(0, noise_scale=noise_scale)
    sizes = np.asarray(batch, dtype=float)
    at_least(1, batch=float(sizes.min()))
    return np.asarray(least_updates * (1.0 + noise_scale / sizes))


def best_rate(largest_rate: float, noise_scale: float, batch: ArrayLike) -> np.ndarray:
    """The learning rate of the longest useful step, largest_rate / (1 + B_noise / B), shaped as `batch`.

    Far below the noise scale it grows in proportion to the batch: linear scaling. Far above, it grows no more.

    largest_rate: the best one with the gradient of all samples. noise_scale: B_noise. batch: B, one or several.

    >>> best_rate(1.0, noise_scale=32.0, batch=[1, 2, 32, 3200]).round(3).tolist()
    [0.03, 0.059, 0.5, 0.99]
    """
    above(0, largest_rate=largest_rate)
    return np.asarray(largest_rate / updates_to_target(1.0, noise_scale, batch))


def fitted(batches: ArrayLike, updates: ArrayLike) -> tuple[float, float]:
    """S_min and B_noise of the curve `updates_to_target` nearest to these updates, by relative distance.

    Raises InputError for fewer than two different batches, or updates that do not fall with the batch.

    >>> [round(found, 6) for found in fitted([1, 8, 64], updates_to_target(50.0, 20.0, [1, 8, 64]))]
    [50.0, 20.0]
    """
    sizes, counts = np.asarray(batches, dtype=float), np.asarray(updates, dtype=float)
    if len(np.unique(sizes)) < 2:
        raise InputError.of("batches", batches, "must have two different values", "give the updates of another batch")
    at_least(1, batches=float(sizes.min()), updates=float(counts.min()))
    terms = np.column_stack([np.ones(len(sizes)), 1.0 / sizes])
    least, slope = np.linalg.lstsq(terms / counts[:, None], np.ones(len(sizes)), rcond=None)[0]
    if not (least > 0 and slope >= 0):
        raise InputError.of(
            "updates", updates, "must become fewer as batches grow, but less than in proportion",
            "give the updates of a smaller and of a larger batch",
        )  # fmt: skip
    return float(least), float(slope / least)


def estimated(small_batch: int, small_square: ArrayLike, large_batch: int, large_square: ArrayLike) -> float:
    """B_noise from the lengths of gradients of two batches.

    N workers have these numbers without further work: the small batch is one worker's, the large one is N times as
    large, and its gradient is the mean of all. Each pair of lengths gives |G|^2 and V without bias, but with much
    noise. So V and |G|^2 are averaged over all pairs before they are divided.

    small_square, large_square: squared lengths of gradients, one or several. Raises InputError where the large batch
    is not larger, or the noise hides the gradient.

    >>> estimated(8, [6.0, 4.0], 64, [1.5, 1.5])    # 1 + 32/8 = 5, and 1 + 32/64 = 1.5
    32.0
    """
    at_least(1, small_batch=small_batch)
    above(small_batch, large_batch=large_batch)
    small, large = (float(np.mean(np.asarray(squares, dtype=float))) for squares in (small_square, large_square))
    square = (large_batch * large - small_batch * small) / (large_batch - small_batch)
    if not square > 0:
        raise InputError.of(
            "large_square", large_square, "is so short that the gradient is hidden by noise",
            "average more gradients, or take a larger batch",
        )  # fmt: skip
    return max(small - large, 0.0) / (1.0 / small_batch - 1.0 / large_batch) / square
