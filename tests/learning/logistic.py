"""Logistic regression on digits, in numpy: a convex problem with real data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from distsim.learning.digits import Images, digits
from distsim.learning.objective import Numbers, Samples

CLASSES = 10


@dataclass(frozen=True)
class Logistic:
    """Ten linear scores, whose softmax says how likely each class is. Parameters: weights row by row, then biases.

    >>> problem = Logistic()
    >>> round(problem.loss(problem.start(0)), 4)    # every class is as likely as the others: log 10
    2.3026
    """

    training: Images = field(default_factory=lambda: digits()[0], repr=False)
    test: Images = field(default_factory=lambda: digits()[1], repr=False)

    @property
    def samples(self) -> int:
        """The images to learn from."""
        return len(self.training.pixels)

    def start(self, seed: int) -> Numbers:  # noqa: ARG002 - a convex problem may begin at 0
        """Zeros."""
        return np.zeros((self.training.pixels.shape[1] + 1) * CLASSES)

    def gradient(self, parameters: Numbers, samples: Samples | None = None) -> tuple[float, Numbers]:
        """The mean cross-entropy and its gradient: what the likelihoods exceed the truth by, times the pixels."""
        every = slice(None) if samples is None else samples
        pixels, classes = self.training.pixels[every], self.training.classes[every]
        likely = log_softmax(self._scores(parameters, pixels), axis=1)
        rows = np.arange(len(classes))
        loss = -float(likely[rows, classes].mean())
        excess = np.exp(likely)
        excess[rows, classes] -= 1.0
        excess /= len(classes)
        return loss, np.concatenate([(pixels.T @ excess).ravel(), excess.sum(axis=0)])

    def loss(self, parameters: Numbers) -> float:
        """The mean cross-entropy over all images."""
        scores = self._scores(parameters, self.training.pixels)
        right = scores[np.arange(len(scores)), self.training.classes]
        return float((logsumexp(scores, axis=1) - right).mean())

    def accuracy(self, parameters: Numbers) -> float:
        """The share of the test images whose likeliest class is the right one."""
        scores = self._scores(parameters, self.test.pixels)
        return float((scores.argmax(axis=1) == self.test.classes).mean())

    def _scores(self, parameters: Numbers, pixels: NDArray[np.float32]) -> Numbers:
        weights, biases = parameters[:-CLASSES].reshape(-1, CLASSES), parameters[-CLASSES:]
        scores: Numbers = pixels @ weights + biases
        return scores
