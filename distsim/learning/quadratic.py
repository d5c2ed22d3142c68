"""The noisy quadratic, for which the behaviour of stochastic gradient descent is known in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from distsim.learning.objective import Numbers, Samples
from distsim.random_streams import Purpose, stream

DATA_SEED = 0


@dataclass(frozen=True)
class Quadratic:
    """A loss of sum over i of h_i x_i^2 / 2 along `dimension` directions of curvature h_i; its minimum is 0 at x = 0.

    The logarithms of h_i are evenly spaced, from `flattest` to `steepest`. Sample k adds z_k . x to the loss, and so
    z_k to the gradient, whose noise has the variance h_i in direction i; over all samples the z_k are 0 on average.
    Every run begins at x_i = `distance`.

    >>> loss, gradient = Quadratic(dimension=2, flattest=0.5, steepest=1.0).gradient(np.array([2.0, 1.0]))
    >>> loss, gradient.tolist()
    (1.5, [1.0, 1.0])
    """

    dimension: int = 20
    flattest: float = 0.1
    steepest: float = 1.0
    samples: int = 2**15
    distance: float = 1.0

    @cached_property
    def curvature(self) -> NDArray[np.float64]:
        """h, shape (dimension,)."""
        return np.geomspace(self.flattest, self.steepest, self.dimension)

    @cached_property
    def _noise(self) -> NDArray[np.float64]:
        drawn = stream(DATA_SEED, Purpose.DATA, 0).standard_normal((self.samples, self.dimension))
        noise: NDArray[np.float64] = (drawn - drawn.mean(axis=0)) * np.sqrt(self.curvature)
        return noise

    def start(self, seed: int) -> Numbers:  # noqa: ARG002 - all runs begin alike; their samples differ
        """The same distance from the optimum in all directions."""
        return np.full(self.dimension, self.distance)

    def gradient(self, parameters: Numbers, samples: Samples | None = None) -> tuple[float, Numbers]:
        """h x, and the mean of these samples' noise."""
        gradient = self.curvature * parameters
        loss = 0.5 * float(gradient.dot(parameters))
        if samples is None:
            return loss, gradient
        if len(samples) == 1:
            noise = self._noise[samples[0]]
        else:
            noise = np.add.reduce(self._noise.take(samples, axis=0)) / len(samples)
        gradient += noise
        return loss + float(noise.dot(parameters)), gradient

    def loss(self, parameters: Numbers) -> float:
        """The loss above its minimum of 0."""
        return 0.5 * float(np.dot(self.curvature * parameters, parameters))

    def accuracy(self, parameters: Numbers) -> float:  # noqa: ARG002 - there is nothing to classify
        """NaN."""
        return math.nan
