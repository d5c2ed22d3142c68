"""Independent trials against a queue followed by hand."""

from __future__ import annotations

import heapq

import pytest

from distsim.errors import InputError
from distsim.theory.search import trials_speed_up


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
