"""Schedules: checked symbolically, counted, executed on numbers, simulated, and wrong ones refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from distsim.cluster import Cluster
from distsim.collectives import Schedule, Transfer, parameter_server, ring
from distsim.engine import collective
from distsim.errors import InputError
from distsim.theory import collectives as theory

CLUSTER = Cluster(workers=64, bandwidth="1 GB/s", latency="10 us")
ALGORITHMS = [ring, parameter_server]
SIZES = [1, 2, 3, 4, 5, 8, 13]


def executed(schedule: Schedule, gradients: np.ndarray) -> np.ndarray:
    """What every rank holds after the schedule ran on real numbers; shape (ranks, chunks)."""
    held = np.zeros((schedule.ranks, schedule.chunks))
    held[: schedule.workers] = gradients
    for transfers in schedule.rounds:
        before = held.copy()
        for transfer in transfers:
            piece = before[transfer.source, transfer.chunk]
            held[transfer.target, transfer.chunk] = piece + (
                held[transfer.target, transfer.chunk] if transfer.reduce else 0
            )
    return held


@pytest.mark.parametrize("workers", SIZES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_workers_end_with_the_sum(algorithm: Callable[[int], Schedule], workers: int) -> None:
    schedule = algorithm(workers)
    schedule.check()
    gradients = np.random.default_rng(3).normal(size=(workers, schedule.chunks))
    result = executed(schedule, gradients)[:workers]
    assert result == pytest.approx(np.tile(gradients.sum(axis=0), (workers, 1)), abs=1e-12)


@pytest.mark.parametrize("workers", SIZES)
def test_a_ring_sends_the_least_that_is_possible(workers: int) -> None:
    up, down = ring(workers).bytes_per_link(1e6)
    assert up == pytest.approx(2 * (workers - 1) / workers * 1e6)
    assert down == pytest.approx(up)
    assert len(ring(workers).rounds) == 2 * (workers - 1)


@pytest.mark.parametrize("workers", SIZES)
def test_a_server_carries_every_gradient_twice(workers: int) -> None:
    up, down = parameter_server(workers).bytes_per_link(1e6)
    assert up.tolist() == [1e6] * workers + [workers * 1e6]
    assert down.tolist() == [1e6] * workers + [workers * 1e6]


@pytest.mark.parametrize("workers", [2, 3, 4, 8, 16])
def test_simulated_cost_equals_the_closed_form(workers: int) -> None:
    for schedule, cost in (
        (ring(workers), theory.ring_all_reduce_seconds),
        (parameter_server(workers), theory.parameter_server_seconds),
    ):
        expected = cost(workers=workers, num_bytes=1e8, latency_seconds=1e-5, bytes_per_second=1e9)
        assert collective.run(schedule, CLUSTER, 1e8).ends_seconds == pytest.approx(
            [expected] * schedule.ranks, rel=1e-9
        )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_simulated_transfers_are_the_schedules(algorithm: Callable[[int], Schedule]) -> None:
    schedule = algorithm(5)
    carried = collective.run(
        schedule, CLUSTER, 1e6, starts_seconds=[0.0, 3.0, 1.0, 0.5, 0.0, 0.0][: schedule.ranks]
    ).transfers
    up, down = schedule.bytes_per_link(1e6)
    assert np.bincount(carried.source, carried.bytes, minlength=schedule.ranks) == pytest.approx(up)
    assert np.bincount(carried.target, carried.bytes, minlength=schedule.ranks) == pytest.approx(down)


def broken(change: Callable[[list[list[Transfer]]], None]) -> Schedule:
    """A ring of four with one thing wrong."""
    rounds = [list(transfers) for transfers in ring(4).rounds]
    change(rounds)
    return replace(ring(4), name="mine", rounds=tuple(tuple(transfers) for transfers in rounds))


WRONG = {
    "a transfer is missing": (
        lambda rounds: rounds[5].pop(),
        "'mine', after round 5: chunk = 2: at rank 0 lacks the part of worker 1",
    ),
    "added twice": (
        lambda rounds: rounds[1].append(Transfer(0, 1, 0, reduce=True)),
        "'mine', round 1: chunk = 0: of worker 0 is added twice at rank 1",
    ),
    "to itself": (
        lambda rounds: rounds.__setitem__(0, [Transfer(1, 1, 0, reduce=True)]),
        "round 0: target = 1: must be another rank",
    ),
    "no such rank": (
        lambda rounds: rounds[0].append(Transfer(0, 4, 0, reduce=True)),
        "round 0: target = 4: must be 0 to 3",
    ),
    "no such chunk": (
        lambda rounds: rounds[2].append(Transfer(0, 1, 7, reduce=True)),
        "round 2: chunk = 7: must be 0 to 3",
    ),
    "copied where it must be added": (
        lambda rounds: rounds[0].__setitem__(0, replace(rounds[0][0], reduce=False)),
        "lacks the part of worker 1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_schedule_is_refused_by_chunk_rank_and_round(case: str) -> None:
    change, expected = WRONG[case]
    with pytest.raises(InputError) as caught:
        broken(change).check()
    assert expected in str(caught.value)
    assert "Cure:" in str(caught.value)


def test_sending_what_a_server_does_not_hold_yet_is_refused() -> None:
    schedule = parameter_server(2)
    with pytest.raises(InputError, match=r"round 0: chunk = 0: is sent by rank 2, which holds nothing"):
        replace(schedule, rounds=schedule.rounds[::-1]).check()
