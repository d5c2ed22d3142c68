"""Chunks of collectives in time: sums and bytes against the schedule, the trace and theory, and wrong schedules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distsim
from distsim.chunk_movements import ChunkMovements
from distsim.cluster import Cluster
from distsim.collectives import (
    COLLECTIVES,
    Schedule,
    ScheduleError,
    Topology,
    Transfer,
    halving_doubling,
    parameter_server,
    ring,
    tree,
)
from distsim.engine import collective
from distsim.errors import InputError
from distsim.groups import Groups
from distsim.theory.collectives import all_reduce_bytes_per_worker, server_link_bytes

NUM_BYTES = 6.4e7


def direct(workers: int) -> Schedule:
    """Every rank sends each other rank its chunk, and then its sum."""
    pairs = [(one, other) for one in range(workers) for other in range(workers) if one != other]
    scatter = tuple(Transfer(source, target, target, reduce=True) for source, target in pairs)
    gather = tuple(Transfer(source, target, source, reduce=False) for source, target in pairs)
    return Schedule("direct", workers, workers, (scatter, gather))


SCHEDULES = {kind: row.schedule for kind, row in COLLECTIVES.items()} | {
    "direct": lambda at: direct(at.workers),
    "colocated servers": lambda at: parameter_server(at.workers, at.workers, colocated=True),
    "three servers": lambda at: parameter_server(at.workers, 3),
}


def cluster(workers: int, nic: dict[int, dict[str, str]] | None = None) -> Cluster:
    return Cluster(workers=workers, bandwidth="10 Gbit/s", latency="50 us", nic=nic or {})


@pytest.mark.parametrize("workers", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("name", SCHEDULES)
def test_all_ends_complete_and_links_carry_the_bytes_of_the_schedule(name: str, workers: int) -> None:
    schedule = SCHEDULES[name](Topology(workers, per_node=1 if workers % 2 else 2))
    found = ChunkMovements.simulated(schedule, cluster(workers), NUM_BYTES)
    assert found.fault == ""
    assert (found.sums_at(found.end_seconds) == found.parts)[found.wanted].all()
    assert found.complete_at(found.end_seconds) == found.wanted.sum() > 0
    for own, wanted in zip(found.bytes_per_link, schedule.bytes_per_link(NUM_BYTES), strict=True):
        assert own == pytest.approx(wanted)
    run = collective.run(schedule, cluster(workers), NUM_BYTES)
    assert found.end_seconds == pytest.approx(max(run.ends_seconds))
    for direction, ranks in zip(found.bytes_per_link, (run.transfers.source, run.transfers.target), strict=True):
        assert direction == pytest.approx(np.bincount(ranks, run.transfers.bytes, minlength=schedule.ranks))


@pytest.mark.parametrize("workers", [2, 5, 16])
def test_bytes_are_those_of_theory(workers: int) -> None:
    around, served = (
        ChunkMovements.simulated(one, cluster(workers), NUM_BYTES) for one in (ring(workers), parameter_server(workers))
    )
    assert np.concatenate(around.bytes_per_link) == pytest.approx(all_reduce_bytes_per_worker(NUM_BYTES, workers))
    assert served.bytes_per_link[0][workers] == served.bytes_per_link[1][workers]
    assert served.bytes_per_link[0][workers] == pytest.approx(server_link_bytes(NUM_BYTES, workers))
    assert served.bytes_per_link[0][:workers] == pytest.approx(NUM_BYTES)


def test_sums_grow_round_by_round_around_a_ring() -> None:
    found = ChunkMovements.simulated(ring(4), cluster(4), NUM_BYTES)
    a_round = 50e-6 + NUM_BYTES / 4 / 1.25e9
    most = [int(found.sums_at((number + 0.5) * a_round).max()) for number in range(6)]
    assert most == [1, 2, 3, 4, 4, 4]
    assert [found.complete_at((number + 0.5) * a_round) for number in range(7)] == [0, 0, 0, 4, 8, 12, 16]
    assert found.moments_seconds == pytest.approx([number * a_round for number in range(7)])
    assert found.bytes_at(1.5 * a_round)[1] == pytest.approx([1.5 * NUM_BYTES / 4] * 4)
    assert [share for _, share in found.under_way(1.25 * a_round)] == pytest.approx([0.25] * 4)
    assert found.under_way(found.end_seconds) == []


@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    workers=st.integers(2, 9),
    speeds=st.lists(st.sampled_from(["1 Gbit/s", "3 Gbit/s", "9 Gbit/s"]), min_size=18, max_size=18),
)
def test_on_links_of_any_speed_sums_only_grow_right(name: str, workers: int, speeds: list[str]) -> None:
    schedule = SCHEDULES[name](Topology(workers, per_node=1 if workers % 2 else 2))
    nic = {rank: {"up": speeds[rank], "down": speeds[9 + rank]} for rank in range(workers)}
    found = ChunkMovements.simulated(schedule, cluster(workers, nic), NUM_BYTES)
    assert (found.sums_at(found.end_seconds) == found.parts)[found.wanted].all()
    assert all(0 < value <= workers for one in found.movements for value in one.sums)
    ends = [one.end_seconds for one in found.movements]
    assert ends == sorted(ends)
    carried = [np.concatenate(found.bytes_at(share * found.end_seconds)) for share in np.linspace(0, 1, 7)]
    assert (np.diff(carried, axis=0) >= 0).all()


def test_a_transfer_carries_what_its_source_has_at_the_start_of_the_round() -> None:
    """In recursive doubling two ranks exchange all their sums at once: neither sends what it only now receives."""
    rounds = [[Transfer(rank, rank ^ bit, 0, reduce=True) for rank in range(8)] for bit in (1, 2, 4)]
    schedule = Schedule("recursive doubling", 8, 1, tuple(rounds))
    found = ChunkMovements.simulated(schedule, cluster(8), NUM_BYTES)
    assert found.fault == ""
    assert [one.sums for one in found.movements[::8]] == [(2,), (4,), (8,)]
    assert found.complete_at(found.end_seconds) == 8


def test_it_is_read_from_one_call_of_a_trace() -> None:
    scenario = distsim.example("synchronous_ring").replacing({"steps": 3, "cluster.workers": 4})
    trace = distsim.simulate(scenario)
    rows = trace.transfers.where(trace.transfers.collective == 1)
    found = ChunkMovements.of(ring(4), rows, scenario.gradient_bytes)
    assert found.complete_at(found.end_seconds) == 16
    assert found.movements[0].start_seconds == 0
    assert np.concatenate(found.bytes_per_link) == pytest.approx(1.5 * scenario.gradient_bytes)


def test_sums_of_groups_are_of_a_groups_workers() -> None:
    found = ChunkMovements.simulated(ring(6, Groups(3)), cluster(6), NUM_BYTES)
    assert set(found.parts.flat) == {3}
    assert found.complete_at(found.end_seconds) == found.wanted.sum()


def rounds_changed(schedule: Schedule, number: int, **changes: Any) -> Schedule:
    members = [replace(one, **changes) for one in schedule.rounds[number]]
    return replace(schedule, rounds=(*schedule.rounds[:number], members, *schedule.rounds[number + 1 :]))


WRONG = {
    "a round is missing": replace(ring(4), rounds=ring(4).rounds[:-1]),
    "a round is run twice": replace(ring(4), rounds=ring(4).rounds[:1] + ring(4).rounds),
    "sums are added up": rounds_changed(ring(4), 3, reduce=True),
    "parts are overwritten": rounds_changed(ring(4), 1, reduce=False),
    "the server's sums stay there": replace(parameter_server(3), rounds=parameter_server(3).rounds[:1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_schedule_is_played_and_told_and_never_ends_complete(name: str) -> None:
    schedule = WRONG[name]
    with pytest.raises(ScheduleError) as raised:
        schedule.check()
    found = ChunkMovements.simulated(schedule, cluster(schedule.workers), NUM_BYTES)
    assert found.fault == str(raised.value)
    assert found.complete_at(found.end_seconds) < found.wanted.sum()
    assert len(found.movements) == sum(map(len, schedule.rounds))


def test_a_part_that_is_added_twice_is_negative() -> None:
    found = ChunkMovements.simulated(WRONG["sums are added up"], cluster(4), NUM_BYTES)
    assert (found.sums_at(found.end_seconds) < 0).any()
    right = ChunkMovements.simulated(ring(4), cluster(4), NUM_BYTES)
    assert not any(value < 0 for one in right.movements for value in one.sums)


@pytest.mark.parametrize(
    "transfer",
    [Transfer(0, 4, 0, True), Transfer(-1, 0, 0, True), Transfer(1, 1, 0, True), Transfer(0, 1, 4, True),
     Transfer(0, 1, 3, True, 2), Transfer(0, 1, 0, True, 0)],
)  # fmt: skip
def test_a_schedule_with_unknown_ranks_or_chunks_is_refused(transfer: Transfer) -> None:
    schedule = replace(ring(4), rounds=(*ring(4).rounds, [transfer]))
    with pytest.raises(ScheduleError, match="Cure"):
        ChunkMovements.simulated(schedule, cluster(4), NUM_BYTES)


def test_rows_of_another_schedule_or_size_are_refused() -> None:
    rows = collective.run(ring(4), cluster(4), NUM_BYTES).transfers
    for schedule, num_bytes in (
        (tree(4), NUM_BYTES),
        (ring(4), 2 * NUM_BYTES),
        (WRONG["a round is missing"], NUM_BYTES),
    ):
        with pytest.raises(InputError, match="take the rows of one call"):
            ChunkMovements.of(schedule, rows, num_bytes)


def test_finer_chunks_change_no_bytes_and_no_times() -> None:
    whole = ChunkMovements.simulated(parameter_server(3), cluster(3), NUM_BYTES)
    fine = whole.cut(4)
    assert (whole.chunks, fine.chunks) == (1, 4)
    assert fine.moments_seconds == whole.moments_seconds
    for seconds in np.linspace(0, whole.end_seconds, 9):
        assert (fine.sums_at(seconds) == whole.sums_at(seconds)).all()
        assert np.array_equal(fine.bytes_at(seconds), whole.bytes_at(seconds))
    double = halving_doubling(4)
    cut = ChunkMovements.simulated(double, cluster(4), NUM_BYTES).cut(2)
    assert (cut.sums_at(cut.end_seconds) == 4).all()
    assert {len(one.sums) for one in cut.movements} == {2, 4}


def test_content_is_json_with_everything() -> None:
    found = ChunkMovements.simulated(ring(3), cluster(3), NUM_BYTES)
    content = json.loads(json.dumps(found.content()))
    assert len(content["movements"]) == 12
    for listed, one in zip(content["movements"], found.movements, strict=True):
        values = [one.source, one.target, one.chunk, one.start_seconds, one.end_seconds, one.num_bytes]
        assert listed[:6] == pytest.approx(values)
        assert listed[6] == list(one.sums)
    assert (content["start"], content["parts"], content["wanted"]) == ([[1] * 3] * 3, [[3] * 3] * 3, [[1] * 3] * 3)


def test_a_collective_of_one_rank_moves_nothing() -> None:
    found = ChunkMovements.simulated(ring(1), cluster(1), NUM_BYTES)
    assert (found.movements, found.end_seconds, found.moments_seconds) == ((), 0.0, [0.0])
    assert found.complete_at(0.0) == 1
