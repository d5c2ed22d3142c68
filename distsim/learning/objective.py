"""The objective of a replay: a loss over numbered samples, of one flat array of parameters.

quadratic    a known optimum and noise                                         numpy
sparse       a made-up task whose samples have few of the features each        numpy
torch_model  any torch model: the MLP and the CNN on digits, or one of yours   torch
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]
Samples = NDArray[np.int64]


class Objective(Protocol):
    """A loss to be minimized. Parameters and gradients are arrays of one dimension and one type."""

    @property
    def samples(self) -> int:
        """The number of samples to learn from."""

    def start(self, seed: int) -> Numbers:
        """The initial parameters; the same for the same seed."""

    def gradient(self, parameters: Numbers, samples: Samples | None = None) -> tuple[float, Numbers]:
        """The mean loss over these samples (None: over all), and its gradient, a new array."""

    def loss(self, parameters: Numbers) -> float:
        """The mean loss over all samples."""

    def accuracy(self, parameters: Numbers) -> float:
        """The share of the test samples that are classified correctly; NaN where there is nothing to classify."""
