"""Schedules: checked symbolically, counted, executed on numbers, simulated, and wrong ones refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from distsim.cluster import Cluster
from distsim.collectives import (
    COLLECTIVES,
    Collective,
    Schedule,
    ScheduleError,
    Topology,
    Transfer,
    all_gather,
    all_to_all,
    broadcast,
    gather,
    halving_doubling,
    hierarchical,
    parameter_server,
    reduce,
    reduce_scatter,
    ring,
    scatter,
    send,
)
from distsim.collectives.schedule import START
from distsim.communication import Sends
from distsim.engine import collective
from distsim.errors import InputError
from distsim.groups import Groups
from distsim.theory import collectives as theory

CLUSTER = Cluster(workers=64, bandwidth="1 GB/s", latency="10 us")
ALL_REDUCES: dict[str, Callable[[int], Schedule]] = {
    **{
        row.kind: lambda workers, row=row: row.schedule(Topology(workers))
        for row in COLLECTIVES.values()
        if row.all_reduce
    },
    "one node": lambda workers: hierarchical(workers, workers),
    "nodes of one": lambda workers: hierarchical(workers, 1),
    "nodes of two": lambda workers: hierarchical(2 * workers, 2),
    "nodes of three": lambda workers: hierarchical(3 * workers, 3),
    "three servers": lambda workers: parameter_server(workers, 3),
    "a server on every worker": lambda workers: parameter_server(workers, workers, colocated=True),
    "servers on half the workers": lambda workers: parameter_server(workers, (workers + 1) // 2, colocated=True),
}
OTHERS = [broadcast, scatter, gather, reduce, all_gather, reduce_scatter, all_to_all]
SIZES = [1, 2, 3, 4, 5, 8, 13]


def executed(schedule: Schedule, held: np.ndarray) -> np.ndarray:
    """What every rank holds after the schedule ran on real numbers; shape (ranks, chunks)."""
    held = held.copy()
    for transfers in schedule.rounds:
        before = held.copy()
        for transfer in transfers:
            for chunk in transfer.carried:
                piece = before[transfer.source, chunk]
                held[transfer.target, chunk] = piece + (held[transfer.target, chunk] if transfer.reduce else 0)
    return held


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ALL_REDUCES)
def test_all_workers_end_with_the_sum(name: str, size: int) -> None:
    schedule = ALL_REDUCES[name](size)
    schedule.check()
    gradients = np.random.default_rng(3).normal(size=(schedule.workers, schedule.chunks))
    held = np.concatenate([gradients, np.zeros((schedule.servers, schedule.chunks))])
    result = executed(schedule, held)[: schedule.workers]
    assert result == pytest.approx(np.tile(gradients.sum(axis=0), (schedule.workers, 1)), abs=1e-12)


@pytest.mark.parametrize("workers", SIZES)
@pytest.mark.parametrize("algorithm", OTHERS)
def test_other_collectives_bring_what_is_wanted(algorithm: Callable[[int], Schedule], workers: int) -> None:
    """On real numbers: what a rank does not hold at the start is not there."""
    schedule = algorithm(workers)
    schedule.check()
    everything = {(rank, chunk) for rank in range(workers) for chunk in range(schedule.chunks)}
    start, end = (everything if given is None else given for given in (schedule.start, schedule.end))
    parts = np.random.default_rng(4).normal(size=(workers, schedule.chunks))
    parts *= np.array([[(rank, chunk) in start for chunk in range(schedule.chunks)] for rank in range(workers)])
    result = executed(schedule, parts)
    for rank, chunk in end:
        assert result[rank, chunk] == pytest.approx(parts[:, chunk].sum(), abs=1e-12)
    assert len(end) >= workers if algorithm is not reduce else end == {(0, 0)}


@pytest.mark.parametrize("root", [0, 1, 4])
def test_any_rank_can_be_the_root(root: int) -> None:
    for algorithm in (broadcast, scatter, gather, reduce):
        algorithm(5, root=root).check()
    send(root, root + 2).check()


@pytest.mark.parametrize(("workers", "rounds"), [(2, 2), (4, 4), (8, 6), (16, 8), (3, 4), (6, 6), (13, 8)])
def test_halving_doubling_takes_logarithmically_many_rounds(workers: int, rounds: int) -> None:
    schedule = halving_doubling(workers)
    assert len(schedule.rounds) == rounds
    if workers & (workers - 1) == 0:
        assert schedule.bytes_per_link(1.0)[0] == pytest.approx(2 * (workers - 1) / workers)


def test_workers_that_do_not_fill_their_nodes_are_refused() -> None:
    with pytest.raises(InputError, match=r"per_node = 4: must divide the 6 workers"):
        hierarchical(6, 4)


def test_more_colocated_servers_than_workers_are_refused() -> None:
    with pytest.raises(InputError, match=r"servers = 5: must be at most the 4 workers"):
        parameter_server(4, servers=5, colocated=True)


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


@pytest.mark.parametrize("sends", ["rendezvous", "eager"])
@pytest.mark.parametrize("name", ALL_REDUCES)
def test_simulated_transfers_are_the_schedules(name: str, sends: Sends) -> None:
    schedule = ALL_REDUCES[name](5)
    starts = np.random.default_rng(2).uniform(0, 0.01, schedule.ranks).tolist()
    carried = collective.run(schedule, CLUSTER, 1e6, starts_seconds=starts, sends=sends).transfers
    up, down = schedule.bytes_per_link(1e6)
    assert np.bincount(carried.source, carried.bytes, minlength=schedule.ranks) == pytest.approx(up)
    assert np.bincount(carried.target, carried.bytes, minlength=schedule.ranks) == pytest.approx(down)


@pytest.mark.parametrize(
    ("sends", "times"), [("eager", [(0, 2), (0, 1), (2, 3)]), ("rendezvous", [(0, 2), (2, 3), (3, 4)])]
)
def test_a_send_overtakes_no_earlier_send_of_its_rank(sends: Sends, times: list[tuple[float, float]]) -> None:
    """Rank 0 sends two chunks, receives one and sends it on; a chunk takes a second. The receive may be over early."""
    rounds = [Transfer(0, 1, 0, reduce=True, chunks=2), Transfer(2, 0, 0, reduce=True), Transfer(0, 1, 0, reduce=True)]
    schedule = Schedule("mine", workers=3, chunks=2, rounds=tuple((one,) for one in rounds))
    cluster = Cluster(workers=3, bandwidth="1 MB/s", latency="0 s")
    carried = collective.run(schedule, cluster, 2e6, sends=sends).transfers
    found = {(row.source, row.bytes): (row.start_seconds, row.end_seconds) for row in carried.to_pandas().itertuples()}
    assert [found[one.source, 1e6 * one.chunks] for one in rounds] == times


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


PLACES = {
    "a transfer is missing": (5, 0, 2),
    "added twice": (1, 1, 0),
    "to itself": (0, 1, 0),
    "no such rank": (0, None, None),
}


@pytest.mark.parametrize("case", PLACES)
def test_the_error_tells_the_place_in_fields_too(case: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        broken(WRONG[case][0]).check()
    assert (caught.value.round, caught.value.rank, caught.value.chunk) == PLACES[case]


SERVER = 3  # of three workers


def of_three(**pairs: tuple[int, int]) -> Schedule:
    """Of three workers and a server; pairs: the one at the `start`, or the `end`."""
    start, end = (frozenset({pairs[when]}) if when in pairs else None for when in ("start", "end"))
    return Schedule("mine", workers=3, chunks=2, rounds=(), servers=1, start=start, end=end)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (of_three(start=(7, 0)), "at the start: rank = 7: must be 0 to 2. Cure: correct (7, 0) in start"),
        (of_three(start=(-1, 0)), "at the start: rank = -1: must be 0 to 2"),
        (of_three(start=(SERVER, 0)), "at the start: rank = 3: must be 0 to 2"),
        (of_three(start=(0, 2)), "at the start: chunk = 2: must be 0 to 1"),
        (of_three(end=(7, 0)), "at the end: rank = 7: must be 0 to 3. Cure: correct (7, 0) in end"),
        (of_three(end=(0, -1)), "at the end: chunk = -1: must be 0 to 1"),
    ],
)
def test_a_start_or_end_that_names_what_there_is_not_is_refused(schedule: Schedule, expected: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        schedule.check()
    assert expected in str(caught.value)
    assert (caught.value.round, caught.value.rank, caught.value.chunk) == (START, None, None)


def test_a_server_may_be_wanted_at_the_end() -> None:
    transfers = tuple(Transfer(worker, SERVER, 0, reduce=True) for worker in range(3))
    Schedule("mine", 3, 1, (transfers,), servers=1, end=frozenset({(SERVER, 0)})).check()


def test_a_schedule_without_rounds_is_wrong_at_the_start() -> None:
    with pytest.raises(ScheduleError, match="'mine', at the start: chunk = 0: at rank 0 lacks the part of worker 1"):
        Schedule("mine", workers=2, chunks=1, rounds=()).check()


def test_sending_what_a_server_does_not_hold_yet_is_refused() -> None:
    schedule = parameter_server(2)
    with pytest.raises(InputError, match=r"round 0: chunk = 0: is sent by rank 2, which holds nothing"):
        replace(schedule, rounds=schedule.rounds[::-1]).check()


@pytest.mark.parametrize("row", COLLECTIVES.values(), ids=COLLECTIVES)
@pytest.mark.parametrize("topology", [Topology(1), Topology(6, 3, 2), Topology(12, 4, 5, colocated=True)])
def test_the_table_counts_the_transfers_of_its_schedules(row: Collective, topology: Topology) -> None:
    schedule = row.schedule(topology)
    schedule.check()
    assert schedule.name == row.kind
    assert row.transfers(topology) == sum(map(len, schedule.rounds))


GROUPED: list[Callable[[int, Groups], Schedule]] = [ring, all_gather, reduce_scatter]


@pytest.mark.parametrize("algorithm", GROUPED)
@pytest.mark.parametrize("groups", [Groups(2), Groups(3, stride=2), Groups(1, stride=3), Groups(4, stride=1)], ids=str)
def test_groups_each_make_a_sum_of_their_own(algorithm: Callable[[int, Groups], Schedule], groups: Groups) -> None:
    workers = 12
    schedule = algorithm(workers, groups)
    schedule.check()
    held = np.arange(1.0, 1.0 + workers)[:, None] * np.ones((workers, schedule.chunks))
    start = schedule.start or {(rank, chunk) for rank in range(workers) for chunk in range(schedule.chunks)}
    own = np.zeros_like(held)
    for rank, chunk in start:
        own[rank, chunk] = held[rank, chunk]
    found = executed(schedule, own)
    for rank, chunk in schedule.end or {(rank, chunk) for rank in range(workers) for chunk in range(schedule.chunks)}:
        assert found[rank, chunk] == own[groups.members(rank), chunk].sum()
    assert all(groups.place(transfer.source) != groups.place(transfer.target) for _, transfer in schedule.transfers())
    row, topology = COLLECTIVES[schedule.name], Topology(workers, groups=groups)
    assert row.transfers(topology) == sum(1 for _ in row.schedule(topology).transfers())


@pytest.mark.parametrize("algorithm", GROUPED)
def test_a_group_that_lacks_a_round_is_refused(algorithm: Callable[[int, Groups], Schedule]) -> None:
    schedule = algorithm(6, Groups(3, stride=2))
    with pytest.raises(ScheduleError, match="lacks the part of worker"):
        replace(schedule, rounds=schedule.rounds[:-1]).check()
