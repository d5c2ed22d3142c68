"""Independent trials against a queue followed by hand, the best possible order, and drawing."""

from __future__ import annotations

import heapq
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.errors import InputError
from distsim.theory.search import (
    equal_trials_seconds,
    exponential_trials_seconds,
    parallel_trials_seconds,
    trials_one_after_the_other_seconds,
    trials_speed_up,
)

lengths = st.lists(st.floats(0.0, 100.0), max_size=30)


@given(lengths, st.integers(1, 8))
def test_trials_against_a_queue_by_hand(trials: list[float], workers: int) -> None:
    running: list[float] = []
    last = 0.0
    for seconds in trials:
        start = heapq.heappop(running) if len(running) == workers else 0.0
        heapq.heappush(running, start + seconds)
        last = max(last, start + seconds)
    found = parallel_trials_seconds(trials, workers)
    assert found == pytest.approx(last, rel=1e-9)
    assert found >= max([sum(trials) / workers, *trials]) * (1 - 1e-9)


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6), st.integers(2, 3))
def test_no_order_of_starting_is_far_from_the_best(trials: list[float], workers: int) -> None:
    best = math.inf
    for places in product(range(workers), repeat=len(trials)):
        loads = [0.0] * workers
        for place, seconds in zip(places, trials, strict=True):
            loads[place] += seconds
        best = min(best, max(loads))
    assert best * (1 - 1e-9) <= parallel_trials_seconds(trials, workers) <= best * (2 - 1 / workers) * (1 + 1e-9)


@pytest.mark.parametrize("workers", [1, 3, 4])
@pytest.mark.parametrize("trials", [1, 3, 8, 12])
def test_trials_that_are_alike(trials: int, workers: int) -> None:
    alike = [7.0] * trials
    assert equal_trials_seconds(7.0, trials, workers) == parallel_trials_seconds(alike, workers)
    # Data parallelism is as fast with exactly this speed-up.
    needed = trials_speed_up(trials, workers)
    assert trials_one_after_the_other_seconds(alike, needed) == pytest.approx(parallel_trials_seconds(alike, workers))
    assert needed <= workers


@pytest.mark.parametrize(("trials", "workers"), [(12, 4), (4, 4), (3, 8), (30, 7)])
def test_exponential_lengths_against_drawing(trials: int, workers: int) -> None:
    rows = np.random.default_rng(3).exponential(2.0, (4000, trials))
    drawn = [parallel_trials_seconds(row.tolist(), workers) for row in rows]
    expected = exponential_trials_seconds(2.0, trials, workers)
    assert abs(np.mean(drawn) - expected) <= 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: parallel_trials_seconds([1.0], 0), "workers = 0"),
        (lambda: parallel_trials_seconds([1.0, -1.0], 2), "trial_seconds = [1.0, -1.0]"),
        (lambda: trials_one_after_the_other_seconds([1.0], 0.0), "speed_up = 0.0"),
        (lambda: equal_trials_seconds(-1.0, 1, 1), "trial_seconds = -1.0"),
        (lambda: trials_speed_up(0, 4), "trials = 0"),
        (lambda: exponential_trials_seconds(1.0, 4, 0), "workers = 0"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
