"""One table of distributions; each must agree with its own samples and with independent answers."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

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

TIMES = tuple(np.random.default_rng(3).gamma(4.0, 0.02, size=25))

# The Paretos have a finite fourth moment (alpha > 4), which the error of a sample variance needs;
# heavier tails are in HEAVY and are tested where that is not needed.
CASES = {
    "constant": Constant(mean=0.05),
    "uniform": Uniform(mean=0.05, cv=0.3),
    "uniform from zero": Uniform(mean=2.0, cv=3**-0.5),
    "exponential": Exponential(mean=0.05),
    "shifted exponential": ShiftedExponential(mean=0.05, cv=0.3),
    "lognormal": Lognormal(mean=0.05, cv=0.3),
    "lognormal, wide": Lognormal(mean=2.0, cv=1.0),
    "pareto": Pareto(mean=0.05, alpha=6.0),
    "pareto of cv": Pareto.of_cv(mean=0.05, cv=0.2),
    "empirical": Empirical(TIMES),
    "empirical with ties": Empirical((0.2, 0.1, 0.2, 0.4, 0.2)),
}
HEAVY = {
    "lognormal, very wide": Lognormal(mean=1.0, cv=3.0),
    "pareto, infinite fourth moment": Pareto(mean=1.0, alpha=2.5),
    "pareto, infinite variance": Pareto(mean=1.0, alpha=1.5),
}
ALL = CASES | HEAVY
SMOOTH = {name: d for name, d in ALL.items() if not isinstance(d, (Constant, Empirical))}

every_case = pytest.mark.parametrize("distribution", CASES.values(), ids=CASES)
every_distribution = pytest.mark.parametrize("distribution", ALL.values(), ids=ALL)
every_smooth = pytest.mark.parametrize("distribution", SMOOTH.values(), ids=SMOOTH)


def samples(distribution: Distribution, count: int) -> np.ndarray:
    return distribution.sample(np.random.default_rng(20), count)


@every_case
def test_sample_mean_and_variance(distribution: Distribution) -> None:
    drawn = samples(distribution, 200_000)
    error = drawn.std() / math.sqrt(len(drawn))
    assert abs(drawn.mean() - distribution.mean_seconds) <= 4 * error + 1e-15
    squares = (drawn - distribution.mean_seconds) ** 2
    error = squares.std() / math.sqrt(len(drawn))
    assert abs(squares.mean() - distribution.variance_seconds2) <= 4 * error + 1e-15


def test_variance_that_does_not_exist_is_infinite() -> None:
    assert Pareto(mean=1.0, alpha=2.0).variance_seconds2 == math.inf


@pytest.mark.parametrize("cv", [0.01, 0.2, 1.0, 5.0])
def test_pareto_of_a_cv_has_it(cv: float) -> None:
    distribution = Pareto.of_cv(mean=2.0, cv=cv)
    assert distribution.alpha > 2
    assert math.sqrt(distribution.variance_seconds2) / 2.0 == pytest.approx(cv, rel=1e-9)


@pytest.mark.parametrize("distribution", [d for d in CASES.values() if hasattr(d, "cv")])
def test_cv_is_standard_deviation_over_mean(distribution: Distribution) -> None:
    assert math.sqrt(distribution.variance_seconds2) / distribution.mean_seconds == pytest.approx(
        distribution.cv, rel=1e-12
    )


@every_distribution
def test_sample_follows_the_quantiles(distribution: Distribution) -> None:
    """The share of draws up to the quantile of u is u, within 4 standard errors (at least u where the cdf jumps)."""
    drawn = samples(distribution, 50_000)
    for level in (0.01, 0.1, 0.5, 0.9, 0.99):
        at = distribution.quantile(np.array([level]))[0]
        slack = 4 * math.sqrt(level * (1 - level) / len(drawn))
        assert np.mean(drawn <= at) >= level - slack
        assert np.mean(drawn < at) <= level + slack


@every_distribution
def test_draws_are_finite_and_not_negative(distribution: Distribution) -> None:
    drawn = samples(distribution, 50_000)
    assert drawn.shape == (50_000,)
    assert drawn.dtype == np.float64
    assert np.isfinite(drawn).all()
    assert (drawn >= 0).all()


@every_distribution
def test_drawing_3_and_then_4_is_drawing_7(distribution: Distribution) -> None:
    generator = np.random.default_rng(5)
    parts = np.concatenate([distribution.sample(generator, 3), distribution.sample(generator, 4)])
    assert parts.tobytes() == distribution.sample(np.random.default_rng(5), 7).tobytes()


@every_smooth
def test_quantile_and_cdf_are_inverse(distribution: Distribution) -> None:
    levels = np.linspace(0.001, 0.999, 333)
    at = distribution.quantile(levels)
    assert (np.diff(at) > 0).all()
    assert distribution.cdf(at) == pytest.approx(levels, abs=1e-12)
    assert distribution.survival(at) == pytest.approx(1 - levels, abs=1e-12)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200))
def test_quantile_and_cdf_of_recorded_times_are_inverse(times: list[float]) -> None:
    recorded = Empirical(tuple(times))
    at = np.sort(times)
    assert recorded.quantile(recorded.cdf(at)).tolist() == at.tolist()
    assert recorded.quantile(np.array([0.0, 1.0])).tolist() == [at[0], at[-1]]
    assert recorded.survival(np.array([-1.0, 2e6])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("count", range(1, 130))
def test_every_recorded_time_is_its_own_quantile(count: int) -> None:
    """Of 25 times, the 7th: 7 / 25 x 25 is a little more than 7 in floats."""
    at = np.arange(count, dtype=float)
    recorded = Empirical(tuple(at))
    assert recorded.quantile(recorded.cdf(at)).tolist() == at.tolist()
    assert recorded.quantile(recorded.cdf(at) - 1e-9).tolist() == at.tolist()


def test_cdf_jumps_where_a_time_is_certain() -> None:
    assert Constant(mean=2.0).cdf(np.array([1.9, 2.0, 2.1])).tolist() == [0.0, 1.0, 1.0]
    assert Empirical((1.0, 3.0)).cdf(np.array([0.9, 1.0, 2.9, 3.0])).tolist() == [0.0, 0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    ("distribution", "independent"),
    [
        (Exponential(mean=0.05), stats.expon(scale=0.05)),
        (ShiftedExponential(mean=0.05, cv=0.3), stats.expon(loc=0.035, scale=0.015)),
        (Uniform(mean=1.0, cv=0.3), stats.uniform(loc=1 - 0.3 * 3**0.5, scale=0.6 * 3**0.5)),
        (Lognormal(mean=2.0, cv=1.0), stats.lognorm(s=math.log(2) ** 0.5, scale=2.0 / 2**0.5)),
        (Pareto(mean=3.0, alpha=1.5), stats.pareto(b=1.5, scale=1.0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_survival_is_exact_far_out_in_the_tail(distribution: Distribution, independent: object) -> None:
    at = distribution.mean_seconds * np.array([0.0, 0.3, 1.0, 1.4, 3.0, 20.0, 40.0])
    assert distribution.survival(at) == pytest.approx(independent.sf(at), rel=1e-12, abs=0.0)


@every_distribution
def test_mean_is_the_integral_of_survival(distribution: Distribution) -> None:
    if isinstance(distribution, Pareto):
        at = np.geomspace(distribution.scale, distribution.scale * 1e40, 400)
    else:
        at = np.unique(
            np.concatenate([distribution.kinks_seconds, distribution.mean_seconds * np.geomspace(1e-4, 1e4, 200)])
        )
    pieces = [
        integrate.quad(lambda t: float(distribution.survival(np.array([t]))[0]), a, b, limit=200)[0]
        for a, b in pairwise([0.0, *at])
    ]
    assert math.fsum(pieces) == pytest.approx(distribution.mean_seconds, rel=1e-7)


@every_case
def test_kinks_are_where_the_cdf_bends_or_jumps(distribution: Distribution) -> None:
    kinks = distribution.kinks_seconds
    assert (np.diff(kinks) > 0).all()
    assert distribution.cdf(kinks[:1] * (1 - 1e-9)) == 0
    if isinstance(distribution, Empirical):
        assert set(kinks) == set(distribution.times)


# Order statistics


@every_distribution
@pytest.mark.parametrize("n", [2, 5, 16])
def test_order_statistics_against_drawing(distribution: Distribution, n: int) -> None:
    rows = np.sort(samples(distribution, 30_000 * n).reshape(-1, n), axis=1)
    for k in {1, (n + 1) // 2, n - 1, n}:
        kth = rows[:, k - 1]
        if isinstance(distribution, Pareto) and distribution.alpha * (n - k + 1) <= 2:
            continue  # the k-th smallest has no variance, so a sample mean has no standard error
        error = kth.std() / math.sqrt(len(kth))
        assert abs(kth.mean() - distribution.expected_order_statistic(k, n)) <= 4 * error + 1e-15


@every_distribution
@pytest.mark.parametrize("n", [1, 3, 40])
def test_order_statistics_add_up_to_the_mean(distribution: Distribution, n: int) -> None:
    each = [distribution.expected_order_statistic(k, n) for k in range(1, n + 1)]
    assert math.fsum(each) / n == pytest.approx(distribution.mean_seconds, rel=1e-9)
    assert (np.diff(each) >= -1e-12).all()


@every_distribution
def test_the_largest_of_all_is_the_expected_maximum(distribution: Distribution) -> None:
    assert distribution.expected_maximum(7) == distribution.expected_order_statistic(7, 7)
    assert distribution.expected_maximum(1) == pytest.approx(distribution.mean_seconds, rel=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "seconds"),
    [
        (4, 4, 2.08333), (8, 8, 2.71786), (4, 8, 0.63452), (7, 8, 1.71786), (16, 16, 3.38073), (32, 32, 4.05850),
        (100, 100, 5.18738), (96, 100, 3.10404), (98, 100, 3.68738), (99, 100, 4.18738),
    ],
)  # fmt: skip
def test_exponential_order_statistics_are_harmonic(k: int, n: int, seconds: float) -> None:
    harmonic = sum(1 / i for i in range(n, n - k, -1))
    assert Exponential(mean=1.0).expected_order_statistic(k, n) == pytest.approx(harmonic, rel=1e-12)
    assert harmonic == pytest.approx(seconds, abs=6e-6)
    shifted = ShiftedExponential(mean=1.0, cv=0.25).expected_order_statistic(k, n)
    assert shifted == pytest.approx(0.75 + 0.25 * harmonic, rel=1e-12)


@every_smooth
def test_order_statistics_against_their_density(distribution: Distribution) -> None:
    """k C(n, k) integral of Q(u) u^(k-1) (1-u)^(n-k), by a mesh in log(u / (1 - u)): not how the module does it."""
    x = np.linspace(-36, 36, 20_001)
    u, tail = special.expit(x), special.expit(-x)
    at = distribution.quantile(u)
    for k, n in [(1, 4), (3, 4), (50, 100), (95, 100)]:
        density = np.exp(special.xlogy(k, u) + special.xlogy(n - k + 1, tail) - special.betaln(k, n - k + 1))
        expected = integrate.simpson(at * density, x=x)
        assert distribution.expected_order_statistic(k, n) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("n", [8, 100, 1000])
@pytest.mark.parametrize("cv", [0.01, 0.3, 3.0])
def test_lognormal_order_statistics_are_exact_and_quick(cv: float, n: int) -> None:
    """Against the integral over normal scores z; the trapezoid rule converges faster than any power there."""
    distribution = Lognormal(mean=1.0, cv=cv)
    sigma = math.sqrt(math.log(1 + cv**2))
    step = 0.002
    z = np.arange(-40.0, 50.0, step)
    for k in {1, n // 2, n - 4, n - 1, n}:
        log_density = (
            (k - 1) * special.log_ndtr(z) + (n - k) * special.log_ndtr(-z) - special.betaln(k, n - k + 1)
            - z**2 / 2 - math.log(2 * math.pi) / 2
        )  # fmt: skip
        expected = float(np.exp(log_density + sigma * z - sigma**2 / 2).sum() * step)
        start = time.perf_counter()
        value = distribution.expected_order_statistic(k, n)
        assert time.perf_counter() - start < 0.5  # about 5 ms; the rest is for a busy machine
        assert value == pytest.approx(expected, rel=2e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 3), (4, 3), (-1, 3), (1, 0)])
def test_order_statistics_that_do_not_exist(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="1 <= k <= n"):
        Exponential(mean=1.0).expected_order_statistic(k, n)
