"""Fewer averages: worse after as many steps, better after as many averages, and by the clock it depends on the rate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from distsim.learning.batches import seeds
from distsim.statistics import interval
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.local_sgd import exponential_local_step_seconds, local_sgd_step_seconds
from tests.learning.experiments.local_sgd import (
    DECLARED,
    FAST,
    MOST_STEPS,
    PERIODS,
    SLOW,
    WORKERS,
    losses_after_averages,
    losses_after_steps,
    losses_at,
    seconds_to_target,
    simulated,
)

ENDS = (PERIODS[0], PERIODS[-1])


@pytest.mark.parametrize("period", PERIODS)
def test_a_step_takes_as_long_as_theory_says(period: int) -> None:
    trace = simulated(period, seed=7000)
    average = ring_all_reduce_seconds(trace.scenario.gradient_bytes, WORKERS, 10e6 / 8, latency_seconds=100e-6)
    expected = local_sgd_step_seconds(exponential_local_step_seconds(0.01, WORKERS, period), average, period)
    # An average's wait varies by about half its mean, and the fewest averages of a run are 12.
    assert trace.updates.time_seconds[-1] / MOST_STEPS == pytest.approx(expected, rel=0.08)


@pytest.mark.whole
@pytest.mark.thorough
def test_after_as_many_steps_a_longer_period_is_worse(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(10, 20), first=101)
    for shorter, longer in pairwise(losses_after_steps(FAST, own, 128)):
        assert interval(longer - shorter).low > 0.0


@pytest.mark.whole
def test_after_as_many_averages_a_longer_period_is_better(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(3, 20), first=201)
    for shorter, longer in pairwise(losses_after_averages(FAST, own, whole(4, 8))):
        assert interval(shorter - longer).low > 0.0


@pytest.mark.whole
def test_by_the_clock_the_declared_period_beats_both_ends(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(10, 20), first=601)  # five are too few on some processors, whose rounding differs
    often, declared, seldom = seconds_to_target(FAST, own, (ENDS[0], DECLARED, ENDS[1]))
    assert np.isfinite([often, declared, seldom]).all()
    assert interval(often - declared).low > 0.0
    assert interval(seldom - declared).low > 0.0


@pytest.mark.thorough
def test_its_loss_is_the_lowest_all_along() -> None:
    own = seeds(20, first=401)
    for seconds in (2.0, 3.0):
        often, declared, seldom = losses_at(FAST, own, seconds, (ENDS[0], DECLARED, ENDS[1]))
        assert interval(often - declared).low > 0.0
        assert interval(seldom - declared).low > 0.0


@pytest.mark.whole
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_at_a_low_rate_the_longest_period_is_best(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(4, 20), first=501)
    for shorter, longer in pairwise(seconds_to_target(SLOW, own, PERIODS[whole(2, 0) :])):
        assert interval(shorter - longer).low > 0.0
