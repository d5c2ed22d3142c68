"""Order statistics of workers that may differ: against closed forms, other distributions' own, and drawing."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from distsim.distributions import (
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Lognormal,
    Pareto,
    ShiftedExponential,
    Uniform,
)
from distsim.errors import InputError
from distsim.theory.order_statistics import (
    WorkerTime,
    expected_maximum_seconds,
    expected_order_statistic_seconds,
    exponential_seconds,
    harmonic,
    integral_of_survival,
    median_maximum_seconds,
)

DISTRIBUTIONS: list[Distribution] = [
    Constant(0.05),
    Uniform(1.0, 0.3),
    Exponential(0.05),
    ShiftedExponential(1.0, 0.3),
    Lognormal(1.0, 0.01),
    Lognormal(1.0, 0.3),
    Lognormal(1.0, 3.0),
    Pareto(1.0, 1.2),
    Pareto(1.0, 3.0),
    Empirical(tuple(np.random.default_rng(2).gamma(2.0, 0.1, 300))),
]
every_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda d: repr(d)[:40])


def drawn(times: list[WorkerTime], rows: int) -> np.ndarray:
    """Independent draws, shape (rows, workers), by numpy alone."""
    generator = np.random.default_rng(11)
    columns = []
    for time in times:
        column = time.slow_factor * time.undisturbed.sample(generator, rows)
        columns.append(column + time.pause_seconds * (generator.random(rows) < time.pause_probability))
    return np.stack(columns, axis=1)


# Closed forms


@pytest.mark.parametrize("n", [0, 1, 2, 10, 1000])
def test_harmonic_numbers_against_adding_fractions(n: int) -> None:
    assert harmonic(n) == pytest.approx(float(sum((Fraction(1, i) for i in range(1, n + 1)), Fraction(0))), abs=1e-12)


@given(st.integers(1, 200), st.data(), st.floats(1e-3, 1e3), st.floats(0, 10))
def test_exponential_forms_against_the_distributions_own(
    n: int, data: st.DataObject, mean: float, shift: float
) -> None:
    k = data.draw(st.integers(1, n))
    assert exponential_seconds(mean, k, n) == pytest.approx(Exponential(mean).expected_order_statistic(k, n), rel=1e-9)
    both = ShiftedExponential(mean=shift + mean, cv=mean / (shift + mean))
    expected = shift + exponential_seconds(mean, k, n)
    assert expected == pytest.approx(both.expected_order_statistic(k, n), rel=1e-9)


# Workers that are alike


@every_distribution
@pytest.mark.parametrize("n", [1, 2, 8, 100, 1000])
def test_workers_alike_against_the_distributions_own(distribution: Distribution, n: int) -> None:
    for k in {1, (n + 1) // 2, max(1, n - 4), n}:
        expected = distribution.expected_order_statistic(k, n)
        assert expected_order_statistic_seconds([WorkerTime(distribution)] * n, k) == pytest.approx(expected, rel=2e-9)


@every_distribution
@pytest.mark.parametrize("n", [2, 7])
def test_counting_worker_by_worker_against_counting_all_at_once(distribution: Distribution, n: int) -> None:
    """One worker that is unlike in name only takes the path for workers that differ."""
    alike = [WorkerTime(distribution)] * n
    unlike = [*alike[1:], WorkerTime(distribution, pause_probability=1e-300)]
    for k in range(1, n + 1):
        expected = expected_order_statistic_seconds(alike, k)
        assert expected_order_statistic_seconds(unlike, k) == pytest.approx(expected, rel=1e-10)


# Workers that differ


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=5))
def test_the_maximum_of_unlike_exponentials_by_inclusion_and_exclusion(factors: list[float]) -> None:
    """E[max] = sum over subsets S of -(-1)^|S| / (sum of the rates in S)."""
    rates = [1 / factor for factor in factors]
    expected = 0.0
    for subset in range(1, 2 ** len(rates)):
        chosen = [rate for bit, rate in enumerate(rates) if subset >> bit & 1]
        expected += (-1) ** (len(chosen) + 1) / sum(chosen)
    found = expected_maximum_seconds([WorkerTime(Exponential(1.0), factor) for factor in factors])
    assert found == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.tuples(st.floats(0.1, 10.0), st.sampled_from(DISTRIBUTIONS)), min_size=1, max_size=5))
def test_order_statistics_add_up_to_the_sum_of_the_means(workers: list[tuple[float, Distribution]]) -> None:
    times = [WorkerTime(distribution, factor) for factor, distribution in workers]
    each = [expected_order_statistic_seconds(times, k) for k in range(1, len(times) + 1)]
    assert math.fsum(each) == pytest.approx(sum(time.mean_seconds for time in times), rel=1e-8)
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(each))


def test_one_slow_worker_among_constant_ones_is_waited_for() -> None:
    times = [WorkerTime(Constant(1.0))] * 7 + [WorkerTime(Constant(1.0), slow_factor=3.0)]
    assert expected_maximum_seconds(times) == pytest.approx(3.0, rel=1e-12)
    assert expected_order_statistic_seconds(times, 7) == pytest.approx(1.0, rel=1e-12)


def test_constant_workers_that_pause() -> None:
    """The slowest takes 1 + d unless nobody pauses: 1 + d (1 - (1 - p)^n)."""
    times = [WorkerTime(Constant(1.0), pause_probability=0.02, pause_seconds=0.5)] * 8
    assert expected_maximum_seconds(times) == pytest.approx(1 + 0.5 * (1 - 0.98**8), rel=1e-12)
    assert times[0].mean_seconds == pytest.approx(1.01)


MIXED = {
    "slow lognormal": [WorkerTime(Lognormal(1.0, 0.3))] * 5 + [WorkerTime(Lognormal(1.0, 0.3), 1.5)] * 2,
    "pauses": [WorkerTime(Lognormal(1.0, 0.3), 1.0, 0.05, 5.0)] * 6,
    "slow and pausing": [WorkerTime(Uniform(1.0, 0.2), f, 0.1, 0.7) for f in (1.0, 1.0, 1.3, 2.0)],
    "all kinds": [
        WorkerTime(Constant(1.0)), WorkerTime(Exponential(0.8)), WorkerTime(Pareto(1.0, 4.5)),
        WorkerTime(Empirical((0.5, 1.0, 1.7)), 1.1), WorkerTime(ShiftedExponential(1.0, 0.5), 1.0, 0.2, 1.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("times", MIXED.values(), ids=MIXED)
def test_workers_that_differ_against_drawing(times: list[WorkerTime]) -> None:
    rows = np.sort(drawn(times, 100_000), axis=1)
    for k in range(1, len(times) + 1):
        kth = rows[:, k - 1]
        error = kth.std() / math.sqrt(len(kth))
        assert abs(kth.mean() - expected_order_statistic_seconds(times, k)) <= 4 * error


@pytest.mark.parametrize("workers", [1, 3, 64])
@every_distribution
def test_the_median_of_the_slowest_of_workers_alike_is_a_quantile_of_one(
    distribution: Distribution, workers: int
) -> None:
    """All of n are faster than t with probability F(t)^n."""
    found = median_maximum_seconds([WorkerTime(distribution, slow_factor=2.0)] * workers)
    assert found == pytest.approx(2.0 * distribution.quantile(np.array([0.5 ** (1 / workers)]))[0], rel=1e-9)


@pytest.mark.parametrize("times", MIXED.values(), ids=MIXED)
def test_the_median_of_the_slowest_against_drawing(times: list[WorkerTime]) -> None:
    """As many draws below it as above it, within 4 standard errors; none of these slowest times is one that repeats."""
    slowest = drawn(times, 100_000).max(axis=1)
    below = np.mean(slowest <= median_maximum_seconds(times))
    assert abs(below - 0.5) <= 4 * 0.5 / math.sqrt(len(slowest))


@pytest.mark.parametrize("times", MIXED.values(), ids=MIXED)
def test_survival_and_kinks_of_one_worker_against_drawing(times: list[WorkerTime]) -> None:
    time = times[-1]
    column = drawn([time], 100_000)[:, 0]
    for at in np.quantile(column, [0.1, 0.5, 0.9, 0.99]):
        survival = float(time.survival(np.array([at]))[0])
        assert abs(np.mean(column > at) - survival) <= 4 * math.sqrt(survival * (1 - survival) / len(column)) + 1e-12
    assert column.mean() == pytest.approx(time.mean_seconds, abs=4 * column.std() / math.sqrt(len(column)))
    assert integral_of_survival(time.survival, time.mesh_seconds(0.5)) == pytest.approx(time.mean_seconds, rel=1e-9)
    assert set(time.kinks_seconds) <= set(time.mesh_seconds(0.5))


@pytest.mark.parametrize("pause", [0.01, 3.0, 50.0, 1e5])
def test_pauses_of_any_length_are_integrated(pause: float) -> None:
    """Of two workers one is certain, and much later than the other unless that one pauses."""
    time = WorkerTime(Lognormal(1.0, 0.01), 1.0, 0.1, pause)
    assert expected_maximum_seconds([time]) == pytest.approx(1 + 0.1 * pause, rel=1e-9)
    later = [time, WorkerTime(Constant(2.0))]
    assert expected_maximum_seconds(later) == pytest.approx(2 + 0.1 * max(pause - 1, 0.0), rel=1e-9)


def test_a_hundred_workers_that_all_differ() -> None:
    """Against adaptive quadrature of 1 - product of the cdfs, which knows nothing of meshes."""
    factors = 1.0 + np.arange(100) / 100
    base = Lognormal(1.0, 0.3)

    def late(t: float) -> float:
        return 1.0 - math.prod(base.cdf(t / factors))

    expected = sum(integrate.quad(late, a, b, epsabs=1e-12, limit=200)[0] for a, b in ((0, 2), (2, 4), (4, 8), (8, 30)))
    found = expected_maximum_seconds([WorkerTime(base, factor) for factor in factors])
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("k", [0, 4, -1])
def test_order_statistics_that_do_not_exist(k: int) -> None:
    for call in (
        lambda: exponential_seconds(1.0, k, 3),
        lambda: expected_order_statistic_seconds([WorkerTime(Constant(1.0))] * 3, k),
    ):
        with pytest.raises(InputError, match=f"k = {k}: must be 1 to 3.*Cure: "):
            call()
    with pytest.raises(InputError):
        expected_maximum_seconds([])
