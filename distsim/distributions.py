"""Distributions of compute time: each knows its sample, mean, variance, quantile, survival and expected maximum of n.

All times are non-negative and in seconds. The expected maximum and the other order statistics follow from the
quantile function Q by E[X_(k:n)] = integral over u in (0, 1) of Q(u) dBeta(k, n - k + 1)(u)
(David and Nagaraja, Order Statistics, 3rd edition, section 3.1); distributions with a closed form use that instead.
The table `DISTRIBUTIONS` at the end of this file names those that a scenario can draw from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from distsim.arrays import Floats


class Distribution(ABC):
    """A non-negative random time in seconds."""

    @property
    @abstractmethod
    def mean_seconds(self) -> float:
        """The expectation."""

    @property
    @abstractmethod
    def variance_seconds2(self) -> float:
        """The variance in seconds squared; `inf` where it does not exist."""

    @abstractmethod
    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """`count` independent draws, shape (count,). Drawing 3 and then 4 gives what drawing 7 gives."""

    @abstractmethod
    def quantile(self, probability: Floats) -> Floats:
        """The time not exceeded with this probability; same shape as `probability`, which lies in [0, 1]."""

    @abstractmethod
    def survival(self, seconds: Floats) -> Floats:
        """The probability that a draw takes longer than this; same shape as `seconds`. Exact far out in the tail."""

    def cdf(self, seconds: Floats) -> Floats:
        """The probability that a draw takes at most this long; same shape as `seconds`.

        >>> Uniform(mean=1.0, cv=0.3).cdf(np.array([0.0, 1.0, 2.0]))
        array([0. , 0.5, 1. ])
        """
        return 1.0 - self.survival(seconds)

    @property
    def kinks_seconds(self) -> Floats:
        """The times at which the cdf jumps or bends: where integrals are cut. Default: the ends of its range."""
        ends = self.quantile(np.array([0.0, 1.0]))
        return np.unique(ends[np.isfinite(ends)])

    def expected_order_statistic(self, k: int, n: int) -> float:
        """The mean of the k-th smallest of n independent draws, 1 <= k <= n, in seconds.

        >>> round(Exponential(mean=1.0).expected_order_statistic(4, 8), 5)
        0.63452
        """
        if not 1 <= k <= n:
            raise ValueError(f"the k-th smallest of n needs 1 <= k <= n, got k={k}, n={n}")
        return self._order_statistic(k, n)

    def _order_statistic(self, k: int, n: int) -> float:
        from scipy import integrate, special

        # The substitution u = betaincinv(k, n-k+1, v) makes the weight uniform: a smooth integrand for every k and n.
        def at(v: float) -> float:
            return float(self.quantile(special.betaincinv(k, n - k + 1, np.asarray([v])))[0])

        value, _ = integrate.quad(at, 0.0, 1.0, limit=400, epsabs=0.0, epsrel=1e-9)
        return float(value)

    def expected_maximum(self, n: int) -> float:
        """The mean of the largest of n independent draws in seconds: what a barrier over n workers waits for."""
        return self.expected_order_statistic(n, n)


@dataclass(frozen=True)
class MeanAndCv(Distribution):
    """A distribution given by its mean in seconds and cv, the standard deviation divided by the mean."""

    mean: float
    cv: float

    @property
    def mean_seconds(self) -> float:
        return self.mean

    @property
    def variance_seconds2(self) -> float:
        return (self.cv * self.mean) ** 2


@dataclass(frozen=True)
class Constant(Distribution):
    """Always the same time.

    >>> Constant(mean=0.05).expected_maximum(8)
    0.05
    """

    mean: float

    @property
    def mean_seconds(self) -> float:
        return self.mean

    @property
    def variance_seconds2(self) -> float:
        return 0.0

    def sample(self, generator: np.random.Generator, count: int) -> Floats:  # noqa: ARG002 - nothing is random here
        return np.full(count, self.mean)

    def quantile(self, probability: Floats) -> Floats:
        return np.full_like(probability, self.mean, dtype=float)

    def survival(self, seconds: Floats) -> Floats:
        return np.where(np.asarray(seconds) < self.mean, 1.0, 0.0)

    def _order_statistic(self, k: int, n: int) -> float:  # noqa: ARG002 - all draws are equal
        return self.mean


@dataclass(frozen=True)
class Uniform(MeanAndCv):
    """All times from mean (1 - sqrt(3) cv) to mean (1 + sqrt(3) cv) are equally likely; cv <= 1/sqrt(3).

    >>> round(Uniform(mean=1.0, cv=0.3).expected_maximum(3), 6)    # low + width 3/4
    1.259808
    """

    @property
    def _half_width(self) -> float:
        return math.sqrt(3.0) * self.cv * self.mean

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        return self.quantile(generator.random(count))

    def quantile(self, probability: Floats) -> Floats:
        return self.mean + self._half_width * (2.0 * np.asarray(probability) - 1.0)

    def survival(self, seconds: Floats) -> Floats:
        return np.clip(0.5 - (np.asarray(seconds) - self.mean) / (2.0 * self._half_width), 0.0, 1.0)

    def _order_statistic(self, k: int, n: int) -> float:
        return self.mean + self._half_width * (2.0 * k / (n + 1) - 1.0)


@dataclass(frozen=True)
class ShiftedExponential(MeanAndCv):
    """The time mean (1 - cv), and on top an exponential time of mean `mean` x cv; cv <= 1.

    E[X_(k:n)] = mean (1 - cv) + mean cv (H_n - H_(n-k)), H the harmonic numbers (Dutta et al. 2018).
    """

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        return self.mean * (1.0 - self.cv) + self.mean * self.cv * generator.standard_exponential(count)

    def quantile(self, probability: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return self.mean * (1.0 - self.cv) - self.mean * self.cv * np.log1p(-np.asarray(probability))

    def survival(self, seconds: Floats) -> Floats:
        late = np.maximum(np.asarray(seconds) - self.mean * (1.0 - self.cv), 0.0)
        return np.exp(-late / (self.mean * self.cv))

    def _order_statistic(self, k: int, n: int) -> float:
        harmonic = math.fsum(1.0 / i for i in range(n - k + 1, n + 1))
        return self.mean * (1.0 - self.cv) + self.mean * self.cv * harmonic


class Exponential(ShiftedExponential):
    """Memoryless time: a shifted exponential without the shift.

    >>> round(Exponential(mean=1.0).expected_maximum(8), 5)
    2.71786
    """

    def __init__(self, mean: float) -> None:
        super().__init__(mean=mean, cv=1.0)


@dataclass(frozen=True)
class Lognormal(MeanAndCv):
    """The exponential function of a normal variable, with the given mean and standard deviation mean x cv."""

    @property
    def _sigma(self) -> float:
        return math.sqrt(math.log1p(self.cv**2))

    @property
    def _mu(self) -> float:
        return math.log(self.mean) - self._sigma**2 / 2.0

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        return np.exp(self._mu + self._sigma * generator.standard_normal(count))

    def quantile(self, probability: Floats) -> Floats:
        from scipy import special

        return np.asarray(np.exp(self._mu + self._sigma * special.ndtri(probability)))

    def survival(self, seconds: Floats) -> Floats:
        from scipy import special

        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr((self._mu - np.log(np.maximum(seconds, 0.0))) / self._sigma))


@dataclass(frozen=True)
class Pareto(Distribution):
    """A heavy tail: P(X > x) = (scale / x)^alpha for x >= scale. alpha > 1, since otherwise there is no mean.

    The k-th smallest of n has mean scale Gamma(n+1) Gamma(n-k+1-1/alpha) / (Gamma(n-k+1) Gamma(n+1-1/alpha))
    (Arnold, Pareto Distributions, 2nd edition, section 3.4).
    """

    mean: float
    alpha: float

    @classmethod
    def of_cv(cls, mean: float, cv: float) -> Pareto:
        """The Pareto whose standard deviation is mean x cv: alpha = 1 + sqrt(1 + 1/cv^2), always above 2.

        >>> round(Pareto.of_cv(mean=1.0, cv=0.5).variance_seconds2, 12)
        0.25
        """
        return cls(mean=mean, alpha=1.0 + math.sqrt(1.0 + 1.0 / cv**2))

    @property
    def scale(self) -> float:
        """The smallest possible time in seconds."""
        return self.mean * (self.alpha - 1.0) / self.alpha

    @property
    def mean_seconds(self) -> float:
        return self.mean

    @property
    def variance_seconds2(self) -> float:
        if self.alpha <= 2.0:
            return math.inf
        return self.scale**2 * self.alpha / ((self.alpha - 1.0) ** 2 * (self.alpha - 2.0))

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        return self.scale * np.exp(generator.standard_exponential(count) / self.alpha)

    def quantile(self, probability: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return self.scale * np.exp(-np.log1p(-np.asarray(probability)) / self.alpha)

    def survival(self, seconds: Floats) -> Floats:
        return np.asarray((self.scale / np.maximum(seconds, self.scale)) ** self.alpha)

    def _order_statistic(self, k: int, n: int) -> float:
        tail = 1.0 / self.alpha
        log = math.lgamma(n + 1) + math.lgamma(n - k + 1 - tail) - math.lgamma(n - k + 1) - math.lgamma(n + 1 - tail)
        return self.scale * math.exp(log)


@dataclass(frozen=True)
class Empirical(Distribution):
    """Draws with replacement from recorded times (seconds)."""

    times: tuple[float, ...]

    @cached_property
    def _sorted(self) -> Floats:
        return np.sort(np.asarray(self.times, dtype=float))

    @cached_property
    def _steps(self) -> Floats:
        """The cdf at each of the sorted times, divided as `cdf` divides, so that quantile(cdf(t)) is t."""
        return np.arange(1, len(self._sorted) + 1) / len(self._sorted)

    @property
    def mean_seconds(self) -> float:
        return float(self._sorted.mean())

    @property
    def variance_seconds2(self) -> float:
        return float(self._sorted.var())

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        return self.quantile(generator.random(count))

    def quantile(self, probability: Floats) -> Floats:
        return self._sorted[np.searchsorted(self._steps, probability)]

    def survival(self, seconds: Floats) -> Floats:
        return 1.0 - self.cdf(seconds)

    def cdf(self, seconds: Floats) -> Floats:
        return np.asarray(np.searchsorted(self._sorted, seconds, side="right") / len(self._sorted))

    @property
    def kinks_seconds(self) -> Floats:
        return np.unique(self._sorted)

    def _order_statistic(self, k: int, n: int) -> float:
        from scipy import special

        steps = np.linspace(0.0, 1.0, len(self._sorted) + 1)
        return float(np.diff(special.betainc(k, n - k + 1, steps)) @ self._sorted)


def _pareto(mean: float, cv: float | None = None, alpha: float = 0.0) -> Pareto:
    return Pareto(mean, alpha) if cv is None else Pareto.of_cv(mean, cv)


class DistributionEntry(NamedTuple):
    """A value of `compute.distribution` in a scenario.

    make: called with the mean in seconds and one of `keys`. keys: the keys of `[compute]` that give the spread, of
    which a scenario sets exactly one. largest_cv: above it, times would be negative.
    """

    make: Callable[..., Distribution]
    keys: tuple[str, ...] = ()
    largest_cv: float = math.inf


DISTRIBUTIONS = {
    "constant": DistributionEntry(Constant),
    "uniform": DistributionEntry(Uniform, ("cv",), largest_cv=3**-0.5),
    "exponential": DistributionEntry(Exponential),
    "shifted_exponential": DistributionEntry(ShiftedExponential, ("cv",), largest_cv=1.0),
    "lognormal": DistributionEntry(Lognormal, ("cv",)),
    "pareto": DistributionEntry(_pareto, ("cv", "alpha")),
}
