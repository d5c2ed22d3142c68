"""Optimizers: SGD, plain or with momentum, as in torch.

An optimizer is a frozen description. `begin()` gives an object that holds the state of one run: one for the server, one
for all peers together, or with local SGD one for each worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from distsim.learning.objective import Numbers
from distsim.learning.rates import Rate, constant


class Descent(Protocol):
    """One run's optimizer, with its memory."""

    def step(self, parameters: Numbers, gradient: Numbers, share: float = 1.0) -> Numbers:
        """Returns new parameters; `parameters` is not changed.

        share: `share` x `gradient` is the mean gradient: 1 / n where `gradient` is a sum of n gradients.
        """


class Optimizer(Protocol):
    """The description of an optimizer."""

    def begin(self) -> Descent:
        """A fresh memory for one run."""


@dataclass(frozen=True)
class Sgd:
    """v = momentum v + g; x = x - rate v (torch.optim.SGD). rate: a number, or a rule of `rates`.

    >>> import numpy as np
    >>> descent = Sgd(rate=0.5, momentum=0.5).begin()
    >>> x = descent.step(np.array([1.0]), np.array([1.0]))
    >>> float(x[0]), float(descent.step(x, np.array([1.0]))[0])    # 1 - 0.5, and then - 0.5 x 1.5
    (0.5, -0.25)
    """

    rate: float | Rate
    momentum: float = 0.0

    def begin(self) -> Descent:
        """A state without velocity."""
        return _Rolling(_rule(self.rate), self.momentum)


def _rule(rate: float | Rate) -> Rate:
    return rate if callable(rate) else constant(rate)


def _moved(parameters: Numbers, direction: Numbers, factor: float) -> Numbers:
    """`parameters + factor x direction`.

    float32 results are rounded once, as in torch's add and sub with an alpha, which real runs use: those multiply and
    add in one instruction. In double precision the product of two float32 numbers is exact.
    """
    if parameters.dtype != np.float32:
        return parameters + factor * direction
    exact = float(np.float32(factor)) * direction.astype(np.float64)
    return (parameters + exact).astype(np.float32)


class _Rolling:
    def __init__(self, rate: Rate, momentum: float) -> None:
        self._rate = rate
        self._momentum = momentum
        self._velocity: Numbers | None = None
        self._steps = 0

    def step(self, parameters: Numbers, gradient: Numbers, share: float = 1.0) -> Numbers:
        rate = self._rate(self._steps)
        self._steps += 1
        if self._momentum == 0.0:
            return _moved(parameters, gradient, -rate * share)
        if self._velocity is None:
            self._velocity = share * gradient
        else:
            self._velocity *= self._momentum
            self._velocity += share * gradient
        return _moved(parameters, self._velocity, -rate)
