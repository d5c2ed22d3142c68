"""Local steps against drawing, a sum worked out by hand, and the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.theory.local_sgd import (
    exponential_local_step_seconds,
    local_sgd_step_seconds,
    long_period_local_step_seconds,
)
from distsim.theory.order_statistics import exponential_seconds


@pytest.mark.parametrize("workers", [1, 2, 16, 300])
def test_a_period_of_one_is_a_synchronous_step(workers: int) -> None:
    expected = exponential_seconds(0.05, workers, workers)
    assert exponential_local_step_seconds(0.05, workers, 1) == pytest.approx(expected, rel=1e-9)


def test_two_workers_and_two_steps_by_hand() -> None:
    """E[max] = 2 x 2 - integral of ((1 + t) exp(-t))^2 = 4 - (1/2 + 2/4 + 2/8) = 11/4, for two steps."""
    assert exponential_local_step_seconds(1.0, 2, 2) == pytest.approx(11 / 8, rel=1e-9)


@pytest.mark.parametrize("period", [1, 7, 1000])
def test_one_worker_waits_for_nobody(period: int) -> None:
    assert exponential_local_step_seconds(0.3, 1, period) == pytest.approx(0.3, rel=1e-9)


@pytest.mark.parametrize("workers", [3, 16])
@pytest.mark.parametrize("period", [1, 4, 10, 50])
def test_local_steps_against_drawing(workers: int, period: int) -> None:
    sums = np.random.default_rng(9).standard_gamma(period, (20_000, workers)).max(axis=1) / period
    error = 4 * sums.std() / math.sqrt(len(sums))
    assert abs(sums.mean() - exponential_local_step_seconds(1.0, workers, period)) <= error


def test_longer_periods_are_faster_and_never_below_the_mean() -> None:
    steps = [exponential_local_step_seconds(1.0, 16, period) for period in (1, 2, 5, 20, 100, 10_000)]
    assert steps == sorted(steps, reverse=True)
    assert 1 < steps[-1] < 1.02


def test_long_periods_are_nearly_normal() -> None:
    assert long_period_local_step_seconds(1.0, 1.0, 2, 1) == pytest.approx(1 + 1 / math.sqrt(math.pi), rel=1e-9)
    assert long_period_local_step_seconds(0.3, 0.5, 1, 4) == pytest.approx(0.3, rel=1e-9)
    for period, share in ((10, 0.05), (50, 0.015), (1000, 0.001)):
        exact = exponential_local_step_seconds(2.0, 16, period)
        assert long_period_local_step_seconds(2.0, 1.0, 16, period) == pytest.approx(exact, rel=share)


def test_one_all_reduce_serves_all_steps_of_a_period() -> None:
    assert local_sgd_step_seconds(0.1, 0.4, 1) == pytest.approx(0.5)
    assert local_sgd_step_seconds(0.1, 0.4, 8) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: exponential_local_step_seconds(0.0, 4, 1), "mean_seconds = 0.0"),
        (lambda: exponential_local_step_seconds(1.0, 0, 1), "workers = 0"),
        (lambda: long_period_local_step_seconds(1.0, -1.0, 4, 1), "cv = -1.0"),
        (lambda: long_period_local_step_seconds(1.0, 1.0, 4, 0), "period = 0"),
        (lambda: local_sgd_step_seconds(1.0, 1.0, 0), "period = 0"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
