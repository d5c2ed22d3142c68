"""Independent trials against a queue followed by hand, and what is by chance against draws."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.theory.search import (
    best_of,
    different_settings,
    least_search_seconds,
    list_scheduling_bound,
    trials_against_data_parallel,
    trials_speed_up,
)


@pytest.mark.parametrize("workers", [1, 3, 4])
@pytest.mark.parametrize("trials", [1, 3, 8, 12])
def test_equal_trials_against_a_queue_by_hand(trials: int, workers: int) -> None:
    running: list[float] = []
    last = 0.0
    for _ in range(trials):
        start = heapq.heappop(running) if len(running) == workers else 0.0
        heapq.heappush(running, start + 7.0)
        last = max(last, start + 7.0)
    assert trials_speed_up(trials, workers) == pytest.approx(7.0 * trials / last)
    assert trials_speed_up(trials, workers) <= workers


@pytest.mark.parametrize(("trials", "workers", "quoted"), [(0, 4, "trials = 0"), (4, 0, "workers = 0")])
def test_numbers_that_make_no_sense(trials: int, workers: int, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        trials_speed_up(trials, workers)
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)


def test_trials_at_once_against_one_after_the_other_by_hand() -> None:
    """16 trials of 10 minutes: in four turns of four, or each in 4 minutes on all workers."""
    assert trials_against_data_parallel(16, workers=4, speed_up=2.5) == pytest.approx(16 * 4 / (4 * 10))
    assert trials_against_data_parallel(1, workers=4, speed_up=2.5) == pytest.approx(4 / 10)


def test_what_is_by_chance_against_draws() -> None:
    rng, runs = np.random.default_rng(7), 100_000
    for values, trials in ((4, 4), (4, 1), (10, 7)):
        drawn = np.sort(rng.integers(values, size=(runs, trials)), axis=1)
        different = 1 + (np.diff(drawn, axis=1) > 0).sum(axis=1)
        assert abs(different.mean() - different_settings(values, trials)) <= 4 * different.std() / runs**0.5 + 1e-12
    for trials in (1, 2, 16):
        largest = rng.normal(size=(runs, trials)).max(axis=1)
        assert abs(largest.mean() - best_of(trials)) <= 4 * largest.std() / runs**0.5
    assert best_of(2) == pytest.approx(np.pi**-0.5)  # exact
    assert best_of(3) == pytest.approx(1.5 * np.pi**-0.5)


@pytest.mark.parametrize(
    ("refused", "quoted"),
    [
        (lambda: trials_against_data_parallel(4, 2, 0.0), "speed_up = 0.0"),
        (lambda: least_search_seconds([1.0, -1.0], 2), "seconds[1] = -1.0"),
        (lambda: least_search_seconds([], 2), "trials = 0"),
        (lambda: list_scheduling_bound(0), "workers = 0"),
        (lambda: different_settings(0, 1), "values = 0"),
        (lambda: best_of(0), "trials = 0"),
    ],
)
def test_each_formula_names_what_it_refuses(refused: Callable[[], float], quoted: str) -> None:
    with pytest.raises(InputError, match=re.escape(quoted)):
        refused()
