"""Gradient descent with a constant learning rate: its mean loss, where that rests, and the largest stable rate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from distsim.arrays import Floats
from distsim.theory.arguments import above, at_least


def quadratic_floor(curvature: ArrayLike, noise_variance: ArrayLike, rate: float, batch: int) -> float:
    """The mean loss in the long run of plain SGD with fresh, noisy gradients on the loss sum h_i x_i^2 / 2:

        sum over i of  rate s_i / (2 B (2 - rate h_i))

    The variance v of x_i becomes constant when v = (1 - rate h)^2 v + rate^2 s / B. The floor falls with the effective
    batch B and rises with the rate. For asynchronous updates B is the batch of one worker.
    Source: for the noisy quadratic, Schaul et al. 2013, No more pesky learning rates (arXiv 1206.1106).

    curvature: h, one for each direction. noise_variance: s, of one sample's gradient. rate: below 2 / h.

    >>> quadratic_floor([1.0], [1.0], rate=0.5, batch=1), quadratic_floor([1.0], [1.0], rate=0.5, batch=4)
    (0.16666666666666666, 0.041666666666666664)
    """
    return float(_resting_losses(curvature, noise_variance, rate, batch).sum())


def quadratic_losses(
    curvature: ArrayLike, noise_variance: ArrayLike, rate: float, batch: int, distance: float, updates: int
) -> Floats:
    """The mean loss after 0, 1, ... `updates` updates of plain SGD with fresh, noisy gradients, shape (updates + 1,).

    On the loss sum h_i x_i^2 / 2 the mean of x_i shrinks by (1 - rate h_i) with each update, and the variance of x_i
    follows the recursion of `quadratic_floor`, from 0 on. So

        E[x_i^2] = q^t distance^2 + v_i (1 - q^t)   with q = (1 - rate h_i)^2, v_i = rate s_i / (B h_i (2 - rate h_i))

    curvature, noise_variance, rate, batch: as for `quadratic_floor`. distance: of the start from the optimum, in each
    direction. Source: for the noisy quadratic, Schaul et al. 2013, No more pesky learning rates (arXiv 1206.1106).

    >>> quadratic_losses([1.0], [1.0], rate=0.5, batch=1, distance=2.0, updates=2).tolist()
    [2.0, 0.625, 0.28125]
    """
    at_least(0, updates=updates)
    steepness, resting = np.asarray(curvature, dtype=float), _resting_losses(curvature, noise_variance, rate, batch)
    kept = (1.0 - rate * steepness) ** (2 * np.arange(updates + 1)[:, None])
    return np.asarray((resting + kept * (steepness * distance**2 / 2 - resting)).sum(axis=1))


def _resting_losses(curvature: ArrayLike, noise_variance: ArrayLike, rate: float, batch: int) -> Floats:
    """The terms of `quadratic_floor`, one for each direction."""
    steepness = np.asarray(curvature, dtype=float)
    at_least(1, batch=batch)
    above(0, rate=rate, room=2.0 - rate * float(steepness.max()))
    return np.asarray(rate * np.asarray(noise_variance) / (2 * batch * (2 - rate * steepness)))


def largest_stale_rate(staleness: int, curvature: float) -> float:
    """The learning rate below which descent converges if all gradients are k updates old:

        2 sin(pi / (4k + 2)) / h

    for the recursion x' = x - rate h x_(-k) on the loss h x^2 / 2. With fresh gradients (k = 0) the limit is 2 / h; for
    large k it is near pi / ((2k + 1) h). Above the limit the loss grows without bound. The formula does not hold for a
    staleness that varies around a mean of k. Source: Levin and May 1976, A note on difference-delay equations, in the
    equal form 2 cos(k pi / (2k + 1)).

    staleness: k, the same for all gradients. curvature: h, of the steepest direction.

    >>> largest_stale_rate(0, curvature=1.0), round(largest_stale_rate(1, curvature=1.0), 9)
    (2.0, 1.0)
    """
    at_least(0, staleness=staleness)
    above(0, curvature=curvature)
    return 2.0 * math.sin(math.pi / (4 * staleness + 2)) / curvature
