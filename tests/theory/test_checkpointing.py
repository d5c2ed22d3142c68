"""Checkpoints against published values, numerical optima, and failures that strike run after run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from distsim.engine.failures import wall_clock
from distsim.errors import InputError
from distsim.failures import Failures
from distsim.theory.checkpointing import (
    best_interval_seconds,
    daly_interval_seconds,
    expected_run_seconds,
    goodput,
    system_mean_time_between_seconds,
    young_interval_seconds,
)


def test_dalys_rule_beyond_its_range() -> None:
    assert daly_interval_seconds(200.0, 100.0) == daly_interval_seconds(1e6, 100.0) == 100.0
    # The expansion meets M there: 2 M (1 + 1/3 + 1/9) - 2 M = 8/9 M.
    assert daly_interval_seconds(200.0 * (1 - 1e-12), 100.0) == pytest.approx(800 / 9, rel=1e-9)


@given(st.floats(1.0, 1e3), st.floats(1e3, 1e6), st.booleans())
def test_the_best_interval_against_a_numerical_search(checkpoint: float, mean: float, fails: bool) -> None:
    best = best_interval_seconds(checkpoint, mean)
    reached = goodput(best, checkpoint, 30.0, mean, fails)
    searched = optimize.minimize_scalar(
        lambda interval: -goodput(interval, checkpoint, 30.0, mean, fails),
        bounds=(best / 5, best * 5),
        method="bounded",
    )
    assert reached >= -searched.fun * (1 - 1e-12)
    assert searched.x == pytest.approx(best, rel=1e-3)
    assert daly_interval_seconds(checkpoint, mean) == pytest.approx(best, rel=0.01 if checkpoint < mean / 5 else 0.1)
    assert (1 - best / mean) * math.exp((best + checkpoint) / mean) == pytest.approx(1.0, rel=1e-9)


def test_youngs_rule_minimizes_the_first_order_waste() -> None:
    waste = [60 / interval + interval / (2 * 14400) for interval in (1300.0, young_interval_seconds(60, 14400), 1330.0)]
    assert waste[1] < min(waste[0], waste[2])


def get_through(generator: np.random.Generator, seconds: float, restart: float, mean: float, fails: bool) -> float:
    """One history: failures strike until `seconds` have passed without one."""
    clock = 0.0
    while (until := generator.exponential(mean)) < seconds:
        clock += until
        while fails and (until := generator.exponential(mean)) < restart:
            clock += until
        clock += restart
    return clock + seconds


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize(("seconds", "restart"), [(0.3, 0.0), (1.0, 0.5), (2.0, 2.0)])
def test_getting_through_against_histories_of_failures(seconds: float, restart: float, fails: bool) -> None:
    generator = np.random.default_rng(7)
    drawn = [get_through(generator, seconds, restart, 1.0, fails) for _ in range(20_000)]
    expected = expected_run_seconds(seconds, seconds, 0.0, restart, 1.0, fails)
    assert abs(np.mean(drawn) - expected) <= 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("work", [7.0, 8.0, 1.5])
def test_whole_runs_against_failures_on_one_clock(work: float, fails: bool) -> None:
    """Failures strike at moments fixed beforehand, as if nobody had told them what the run is doing."""
    interval, checkpoint, restart, mean = 2.0, 0.3, 0.7, 4.0
    drawn = []
    for seed in range(4000):
        strikes = iter(np.cumsum(np.random.default_rng(seed).exponential(mean, 400)))
        strike, clock, saved = next(strikes), 0.0, 0.0
        while saved < work:
            piece = min(interval, work - saved)
            end = clock + piece + (checkpoint if saved + piece < work else 0.0)
            if end <= strike:
                clock, saved = end, saved + piece
                continue
            clock = strike + restart
            while (strike := next(strikes)) < clock:
                if fails:
                    clock = strike + restart
        drawn.append(clock)
    expected = expected_run_seconds(work, interval, checkpoint, restart, mean, fails)
    assert abs(np.mean(drawn) - expected) <= 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize(
    ("work", "checkpoints"), [(0.0, 0), (1.0, 0), (400.0, 0), (400.1, 1), (1200.0, 2), (1000.0, 2)]
)
def test_without_failures_a_run_is_its_work_and_its_checkpoints(work: float, checkpoints: int) -> None:
    found = expected_run_seconds(work, 400.0, 10.0, 5.0, mean_time_between_seconds=1e15)
    assert found == pytest.approx(work + 10 * checkpoints, rel=1e-9)


def test_goodput_of_a_long_run() -> None:
    long = expected_run_seconds(1e6, 400.0, 10.0, 60.0, 3600.0)
    assert 1e6 / long == pytest.approx(goodput(400.0, 10.0, 60.0, 3600.0), rel=1e-3)
    assert goodput(400.0, 10.0, 60.0, 1e15) == pytest.approx(400 / 410, rel=1e-9)


def test_the_first_failure_of_many_workers() -> None:
    first = np.random.default_rng(1).exponential(100.0, (20_000, 16)).min(axis=1)
    assert abs(first.mean() - system_mean_time_between_seconds(100.0, 16)) <= 4 * first.std() / math.sqrt(len(first))


def test_whole_runs_against_the_simulators_failures() -> None:
    """Four workers, updates every second, a checkpoint every 5 s of work and none after the last."""
    failures = Failures(mean_time_between="80 s", checkpoint_every="5 s", checkpoint_cost="1 s", restart_cost="2 s")
    updates = np.arange(1.0, 24.0)
    ends = [float(wall_clock(updates, failures, seed, workers=4).at(updates)[-1]) for seed in range(2000)]
    mean = system_mean_time_between_seconds(80.0, 4)
    expected = expected_run_seconds(23.0, 5.0, 1.0, 2.0, mean)
    assert abs(np.mean(ends) - expected) <= 4 * np.std(ends) / math.sqrt(len(ends))


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: system_mean_time_between_seconds(1.0, 0), "workers = 0"),
        (lambda: young_interval_seconds(-1.0, 1.0), "checkpoint_seconds = -1.0"),
        (lambda: daly_interval_seconds(1.0, 0.0), "mean_time_between_seconds = 0.0"),
        (lambda: best_interval_seconds(1.0, float("nan")), "mean_time_between_seconds = nan"),
        (lambda: expected_run_seconds(1.0, 1.0, 0.0, -1.0, 1.0), "restart_seconds = -1.0"),
        (lambda: goodput(0.0, 1.0, 1.0, 1.0), "interval_seconds = 0.0"),
        (lambda: expected_run_seconds(-1.0, 1.0, 1.0, 1.0, 1.0), "work_seconds = -1.0"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
