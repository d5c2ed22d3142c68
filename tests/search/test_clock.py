"""Searches on the simulated clock, beside schedules made in other ways and the bounds of theory."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from distsim import InputError
from distsim.search.clock import simulated_search
from distsim.search.job import Job, Placed, best, search_seconds
from distsim.search.sources import Queue
from distsim.theory.search import least_search_seconds, list_scheduling_bound

CASES = [
    (workers, np.random.default_rng(seed).choice([1, 2, 3, 5, 8, 13], size).tolist())
    for seed, (workers, size) in enumerate(product((1, 2, 3), (1, 2, 5, 7)))
]


def listed(seconds: list[float], workers: int, slow_factors: list[float] | None = None) -> list[Placed]:
    queue = Queue([{"number": number} for number in range(len(seconds))], epochs=1)
    return simulated_search(queue, workers, lambda job: (seconds[job.trial], 0.0), slow_factors)


def shortest(seconds: list[float], workers: int) -> float:
    """The time of the best order and division: every division of the trials among the workers is tried."""
    sums = [
        [sum(one for one, own in zip(seconds, owners, strict=True) if own == worker) for worker in range(workers)]
        for owners in product(range(workers), repeat=len(seconds))
    ]
    return min(max(own) for own in sums)


@pytest.mark.parametrize(("workers", "seconds"), CASES)
def test_a_queue_is_a_list_schedule_within_grahams_bounds(workers: int, seconds: list[float]) -> None:
    free = [0.0] * workers
    for one in seconds:  # written anew: the worker that is free first takes the next
        first = free.index(min(free))
        free[first] += one
    found = listed(seconds, workers)
    assert search_seconds(found) == max(free)
    optimum = shortest(seconds, workers)
    assert least_search_seconds(seconds, workers) <= optimum <= search_seconds(found)
    assert search_seconds(found) <= list_scheduling_bound(workers) * optimum * (1 + 1e-12)
    longest_first = search_seconds(listed(sorted(seconds, reverse=True), workers))
    assert longest_first <= list_scheduling_bound(workers, longest_first=True) * optimum * (1 + 1e-12)


def test_both_bounds_are_reached() -> None:
    """The cases of Graham's papers for three workers: one long trial last, and 2 of each of 5, 4 and one 3 more."""
    assert search_seconds(listed([1.0] * 6 + [3.0], 3)) == pytest.approx(list_scheduling_bound(3) * 3.0)
    seconds = [5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 3.0]
    assert shortest(seconds, 3) == 9.0
    assert search_seconds(listed(seconds, 3)) == pytest.approx(list_scheduling_bound(3, longest_first=True) * 9.0)


def test_the_best_order_is_among_all_orders() -> None:
    """List scheduling loses nothing in itself: some order of the list is the best schedule."""
    seconds = [5.0, 5.0, 4.0, 4.0, 3.0, 3.0]
    assert min(search_seconds(listed(list(order), 3)) for order in permutations(seconds)) == shortest(seconds, 3)


def test_a_slow_worker_takes_fewer_trials_and_a_trial_in_its_last_hour_is_waited_for() -> None:
    found = listed([2.0] * 5, 2, [1.0, 3.0])
    assert [(one.worker, one.start_seconds, one.end_seconds) for one in found] == [
        (0, 0.0, 2.0), (1, 0.0, 6.0), (0, 2.0, 4.0), (0, 4.0, 6.0), (0, 6.0, 8.0)
    ]  # fmt: skip
    assert search_seconds(listed([2.0] * 4, 2, [1.0, 3.0])) == 6.0


class Waiting:
    """Two jobs, and a third only after both have ended at the very same time."""

    def __init__(self) -> None:
        self.ended: list[int] = []
        self._left = [Job(number, {}, 1) for number in range(3)]

    def job(self) -> Job | None:
        return self._left.pop(0) if self._left and (len(self._left) > 1 or len(self.ended) == 2) else None

    def done(self, job: Job, loss: float) -> None:  # noqa: ARG002 # as sources have it
        self.ended.append(job.trial)


def test_all_jobs_that_end_at_one_time_are_told_before_the_next_begins() -> None:
    source = Waiting()
    found = simulated_search(source, 2, lambda _: (1.0, 0.0))
    assert [one.start_seconds for one in found] == [0.0, 0.0, 1.0]
    assert source.ended == [0, 1, 2]


def test_the_best_has_the_lowest_loss_of_those_with_most_epochs_and_no_number_is_worst() -> None:
    def placed(trial: int, until: int, loss: float) -> Placed:
        return Placed(Job(trial, {}, until), 0, 0.0, float(trial), loss)

    found = [placed(0, 1, 0.1), placed(1, 9, float("nan")), placed(2, 9, 0.5), placed(3, 9, 0.5)]
    assert best(found).job.trial == 2
    assert best(found[:2]).job.trial == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((0, None), "workers = 0"), ((2, [1.0]), "must be 2 numbers above 0"), ((1, [0.0]), "must be 1 numbers above 0"),
     ((1, [float("inf")]), "must be 1 numbers above 0")],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments: tuple[int, list[float] | None], said: str) -> None:
    workers, factors = arguments
    with pytest.raises(InputError, match=said):
        listed([1.0], workers, factors)
    with pytest.raises(InputError, match="must hold a job"):
        search_seconds([])


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_a_job_without_a_time_is_refused(seconds: float) -> None:
    with pytest.raises(InputError, match="must be seconds for trial 1, 0 or more"):
        listed([1.0, seconds, 1.0], 1)


def test_jobs_of_no_time_end_at_once() -> None:
    found = listed([0.0, 0.0, 2.0, 0.0], 2)
    assert [one.start_seconds for one in found] == [0.0] * 4
    assert search_seconds(found) == 2.0
