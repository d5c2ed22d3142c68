"""Adam as in torch: an optimizer that adapts, to test the replay with."""

from __future__ import annotations

from dataclasses import dataclass

from distsim.learning.objective import Numbers
from distsim.learning.optimizers import Descent
from distsim.learning.rates import Rate, constant


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015 (arXiv 1412.6980), with torch.optim.Adam's defaults. rate: a number, or a rule of `rates`."""

    rate: float | Rate
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def begin(self) -> Descent:
        """A state without means."""
        return _Adapting(self, self.rate if callable(self.rate) else constant(self.rate))


class _Adapting:
    def __init__(self, settings: Adam, rate: Rate) -> None:
        self._settings = settings
        self._rate = rate
        self._steps = 0
        self._mean: Numbers | float = 0.0
        self._square: Numbers | float = 0.0

    def step(self, parameters: Numbers, gradient: Numbers, share: float = 1.0) -> Numbers:
        gradient = share * gradient
        beta1, beta2 = self._settings.beta1, self._settings.beta2
        rate = self._rate(self._steps)
        self._steps += 1
        self._mean = beta1 * self._mean + (1.0 - beta1) * gradient
        self._square = beta2 * self._square + (1.0 - beta2) * gradient**2
        scale = (self._square / (1.0 - beta2**self._steps)) ** 0.5 + self._settings.epsilon
        return parameters - (rate / (1.0 - beta1**self._steps)) * (self._mean / scale)
