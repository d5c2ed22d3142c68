"""A made-up task in which each sample has few features, so a gradient touches few of the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from distsim.learning.objective import Numbers, Samples
from distsim.random_streams import Purpose, stream

DATA_SEED = 0
TEST_SHARE = 0.2
HIDDEN_SCALE = 5.0  # the larger, the fewer classes are wrong


@dataclass(frozen=True)
class SparseLogistic:
    """Logistic regression between two classes, with a weight for each of `features`.

    density: the share q of the features that a sample has, as a text has words; all samples have norm 1. Where features
    are equally frequent, two samples share a part q of their features, and so their gradients collide in a part q.
    zipf: 0: all features are equally frequent; above 0: the k-th feature has a frequency proportional to k^-zipf.
    A hidden vector of weights gives the probability of a sample's class, so some classes are wrong.

    >>> problem = SparseLogistic(features=100, density=0.02, samples=50)
    >>> _, gradient = problem.gradient(problem.start(0), np.array([3]))
    >>> int(np.count_nonzero(gradient))
    2
    """

    features: int = 1000
    density: float = 0.01
    samples: int = 5000
    zipf: float = 0.0

    @cached_property
    def _data(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Features of all samples, with the test samples last, and their classes, -1 or 1."""
        draws = stream(DATA_SEED, Purpose.DATA, 0)
        rows, active = self.samples + round(TEST_SHARE * self.samples), round(self.density * self.features)
        frequent = np.arange(1, self.features + 1, dtype=float) ** -self.zipf
        # The features with the largest keys are a weighted draw without replacement (Efraimidis and Spirakis 2006).
        keys = np.log(draws.random((rows, self.features))) / frequent
        chosen = np.argpartition(keys, -active, axis=1)[:, -active:]
        inputs = np.zeros((rows, self.features))
        np.put_along_axis(inputs, chosen, 1.0 / np.sqrt(active), axis=1)
        hidden = HIDDEN_SCALE * draws.standard_normal(self.features)
        classes = np.where(draws.random(rows) < expit(inputs @ hidden), 1.0, -1.0)
        return inputs, classes

    def start(self, seed: int) -> Numbers:  # noqa: ARG002 - a convex problem may begin at 0
        """Zeros."""
        return np.zeros(self.features)

    def gradient(self, parameters: Numbers, samples: Samples | None = None) -> tuple[float, Numbers]:
        """The mean of log(1 + exp(-y w . x)) and its gradient."""
        inputs, classes = self._data
        every = slice(0, self.samples) if samples is None else samples
        inputs, classes = inputs[every], classes[every]
        margins = classes * (inputs @ parameters)
        pull = -classes * expit(-margins) / len(classes)
        return float(np.logaddexp(0.0, -margins).mean()), pull @ inputs

    def loss(self, parameters: Numbers) -> float:
        """The mean loss over the samples to learn from."""
        inputs, classes = self._data
        margins = classes[: self.samples] * (inputs[: self.samples] @ parameters)
        return float(np.logaddexp(0.0, -margins).mean())

    def accuracy(self, parameters: Numbers) -> float:
        """The share of the test samples on the right side."""
        inputs, classes = self._data
        return float((classes[self.samples :] * (inputs[self.samples :] @ parameters) > 0).mean())
