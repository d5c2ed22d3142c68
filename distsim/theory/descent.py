"""Gradient descent with a constant learning rate: its loss floor, and the largest stable learning rate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

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
    steepness = np.asarray(curvature, dtype=float)
    at_least(1, batch=batch)
    above(0, rate=rate, room=2.0 - rate * float(steepness.max()))
    return float((rate * np.asarray(noise_variance) / (2 * batch * (2 - rate * steepness))).sum())


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
