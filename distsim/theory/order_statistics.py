"""The mean of the k-th smallest of N independent times: the seconds at a barrier that waits for k of N workers.

A closed form if the workers are alike and their times exponential; otherwise the integral of the survival function,
E[X_(k)] = integral over t > 0 of P(fewer than k of N have finished at t) dt, which holds for workers that differ (David
and Nagaraja, Order Statistics, 3rd edition, chapter 5). With k = N that is 1 - F_1(t) F_2(t) … F_N(t).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from distsim.arrays import Floats
from distsim.distributions import Distribution
from distsim.errors import InputError

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NEGLIGIBLE = 1e-17  # a tail below this share of the integral is ignored


def harmonic(n: int) -> float:
    """The harmonic number H_n = 1 + 1/2 + … + 1/n, by the digamma function: psi(n + 1) + Euler's constant.

    >>> round(harmonic(4), 12) == round(1 + 1/2 + 1/3 + 1/4, 12)
    True
    """
    return float(special.digamma(n + 1) + np.euler_gamma)


def exponential_seconds(mean_seconds: float, k: int, workers: int) -> float:
    """E[X_(k:N)] of N exponential times: m (H_N - H_(N-k)).

    Source: Dutta et al. 2018, Slow and Stale Gradients Can Win the Race (arXiv 1803.01113), K-sync with 1/mu = m.

    mean_seconds: m, of one time. k: which smallest, 1 to N. workers: N.

    >>> round(exponential_seconds(1.0, k=7, workers=8), 5)
    1.71786
    """
    _check(k, workers)
    return mean_seconds * (harmonic(workers) - harmonic(workers - k))


@dataclass(frozen=True)
class WorkerTime:
    """One worker's random seconds per step: slow_factor x a draw, plus a pause with its probability.

    undisturbed: the distribution of the draw. slow_factor: of a persistent straggler. pause_probability,
    pause_seconds: of transient ones; a pause is not stretched by the slow factor.

    >>> from distsim.distributions import Exponential
    >>> WorkerTime(Exponential(mean=0.05), slow_factor=2.0, pause_probability=0.02, pause_seconds=0.5).mean_seconds
    0.11
    """

    undisturbed: Distribution
    slow_factor: float = 1.0
    pause_probability: float = 0.0
    pause_seconds: float = 0.0

    @property
    def mean_seconds(self) -> float:
        """The expectation: f E[X] + p d."""
        return self.slow_factor * self.undisturbed.mean_seconds + self.pause_probability * self.pause_seconds

    def survival(self, seconds: Floats) -> Floats:
        """P(a step takes longer than this): (1 - p) S(t / f) + p S((t - d) / f); same shape as `seconds`."""
        without = self.undisturbed.survival(seconds / self.slow_factor)
        if not self.pause_probability:
            return without
        paused = self.undisturbed.survival((seconds - self.pause_seconds) / self.slow_factor)
        return (1.0 - self.pause_probability) * without + self.pause_probability * paused

    @property
    def kinks_seconds(self) -> Floats:
        """The times at which `survival` jumps or bends, sorted."""
        kinks = self.slow_factor * self.undisturbed.kinks_seconds
        return np.unique(np.concatenate([kinks, kinks + self.pause_seconds]) if self.pause_probability else kinks)

    def mesh_seconds(self, spacing: float) -> Floats:
        """Times between which `survival` is smooth: kinks, and quantiles evenly spaced in log(u / (1 - u))."""
        levels = special.expit(np.arange(-36.0, 36.0 + spacing, spacing))
        quantiles = self.undisturbed.quantile(levels)
        own = self.slow_factor * quantiles[np.isfinite(quantiles)]
        paused = own + self.pause_seconds if self.pause_probability else own
        return np.unique(np.concatenate([own, paused, self.kinks_seconds]))


def expected_maximum_seconds(times: Sequence[WorkerTime]) -> float:
    """The mean of the largest of independent times that may differ: integral of 1 - F_1(t) … F_N(t).

    >>> from distsim.distributions import Exponential
    >>> fast, slow = WorkerTime(Exponential(1.0)), WorkerTime(Exponential(1.0), slow_factor=2.0)
    >>> round(expected_maximum_seconds([fast, slow]), 9) == round(1 + 2 - 1 / (1 / 1 + 1 / 2), 9)
    True
    """
    return expected_order_statistic_seconds(times, len(times))


def median_maximum_seconds(times: Sequence[WorkerTime]) -> float:
    """The median of the largest of independent times that may differ: the t at which F_1(t) … F_N(t) passes 1/2.

    >>> from distsim.distributions import Exponential
    >>> bool(np.isclose(median_maximum_seconds([WorkerTime(Exponential(1.0))] * 8), -np.log(1 - 0.5 ** (1 / 8))))
    True
    """
    _check(len(times), len(times))
    groups = Counter(times)
    mesh = np.unique(np.concatenate([time.mesh_seconds(spacing=0.5) for time in groups]))
    after = int(np.argmax(_still_busy(groups, 1, mesh) <= 0.5))
    if after == 0:
        return float(mesh[0])
    found: float = optimize.brentq(
        lambda t: float(_still_busy(groups, 1, np.array([t]))[0]) - 0.5, mesh[after - 1], mesh[after], xtol=1e-15
    )
    return found


def expected_order_statistic_seconds(times: Sequence[WorkerTime] | Counter[WorkerTime], k: int) -> float:
    """The mean of the k-th smallest of independent times that may differ; relative error below 1e-9.

    times: one per worker, or the number of workers with each. P(X_(k) > t) is the chance that at least N - k + 1
    workers are still busy at t. It is a binomial sum for the largest group of workers that are alike. The m others are
    added one by one (the Poisson binomial distribution), in time proportional to m^2. Tails heavier than t^-1.1 are
    cut.

    >>> from distsim.distributions import Exponential
    >>> round(expected_order_statistic_seconds([WorkerTime(Exponential(1.0))] * 8, k=7), 5)
    1.71786
    """
    groups = Counter(times)
    workers = groups.total()
    _check(k, workers)
    spacing = min(0.5, 4.0 / workers**0.5)
    mesh = np.unique(np.concatenate([time.mesh_seconds(spacing) for time in groups]))
    return integral_of_survival(lambda t: _still_busy(groups, workers - k + 1, t), mesh)


def _still_busy(groups: Counter[WorkerTime], at_least: int, t: Floats) -> Floats:
    """P(at least so many workers have not finished at t), without cancellation in the tail; same shape as t."""
    if len(groups) == 1:
        ((time, workers),) = groups.items()
        return np.asarray(special.betainc(at_least, workers - at_least + 1, time.survival(t)))
    if at_least == 1:
        with np.errstate(divide="ignore"):
            finished = np.sum([count * np.log1p(-time.survival(t)) for time, count in groups.items()], axis=0)
        return np.asarray(-np.expm1(finished), dtype=np.float64)
    largest, alike = groups.most_common(1)[0]
    others = [time for time, count in groups.items() if time != largest for _ in range(count)]
    # busy[j]: the chance that j of the others are busy so far; the last entry collects `at_least` and more.
    most = min(at_least, len(others))
    busy = np.zeros((most + 1, *t.shape))
    busy[0] = 1.0
    for time in others:
        survives = time.survival(t)
        enough = busy[-1] + busy[-2] * survives if most == at_least else busy[-1] * (1 - survives) + busy[-2] * survives
        busy[1:] = busy[1:] * (1.0 - survives) + busy[:-1] * survives
        busy[0] *= 1.0 - survives
        busy[-1] = enough
    survives = largest.survival(t)
    found = np.zeros(t.shape)
    for already, chance in enumerate(busy):
        lacking = at_least - already
        if lacking <= 0:
            found += chance
        elif lacking <= alike:
            found += chance * special.betainc(lacking, alike - lacking + 1, survives)
    return found


def integral_of_survival(survival: Callable[[Floats], Floats], mesh: Floats) -> float:
    """The integral of `survival` from 0 to infinity: the mean of a time that is never negative.

    16 Gauss-Legendre nodes per interval of 0 and the sorted `mesh`. Beyond the mesh each interval is half as long again
    as the last, until an interval adds a negligible share.
    """
    edges = np.concatenate([[0.0], mesh[mesh > 0.0]])
    total = float(_panels(survival, edges).sum())
    last = float(edges[-1])
    while 0.0 < last < 1e300:
        tail = _panels(survival, last * 1.5 ** np.arange(33.0, dtype=np.float64))
        total += float(tail.sum())
        if tail[-1] <= NEGLIGIBLE * total:
            break
        last *= 1.5**32
    return total


def _panels(survival: Callable[[Floats], Floats], edges: Floats) -> Floats:
    """The integral over each interval between neighbouring edges."""
    half = np.diff(edges) / 2.0
    t = (edges[:-1] + half)[:, None] + half[:, None] * NODES
    return np.asarray(survival(t) @ WEIGHTS * half)


def _check(k: int, workers: int) -> None:
    if not 1 <= k <= workers:
        raise InputError.of("k", k, f"must be 1 to {workers}, the number of workers", "wait for at least one worker")
