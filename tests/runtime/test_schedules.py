"""A rank's part in any schedule, over a network in memory: all ranks are threads, and messages take random times."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.collectives import (
    COLLECTIVES,
    Schedule,
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
    tree,
)  # fmt: skip
from distsim.runtime.ranks.collective import contribution
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.schedule_table import schedule_of, table_of
from distsim.runtime.transport import backend
from distsim.runtime.transport.schedule_run import ScheduleRunner, ScheduleTask, runner_of

GIVE_UP_SECONDS = 20.0


class Wire:
    """Messages from one rank to another under one tag, in their order; a send is over when it has been received."""

    def __init__(self) -> None:
        self.sent: SimpleQueue[tuple[torch.Tensor, threading.Event]] = SimpleQueue()


class Receive:
    def __init__(self, wire: Wire, buffer: torch.Tensor, delay: float) -> None:
        self.wire, self.buffer, self.delay = wire, buffer, delay

    def wait(self) -> None:
        carried, over = self.wire.sent.get(timeout=GIVE_UP_SECONDS)
        time.sleep(self.delay)
        assert carried.shape == self.buffer.shape
        self.buffer.copy_(carried)  # what is sent is read now, not when the send was posted
        over.set()


class Send:
    def __init__(self, over: threading.Event) -> None:
        self.over = over

    def wait(self) -> None:
        assert self.over.wait(GIVE_UP_SECONDS), "nobody has received it"


class Network:
    """In place of torch.distributed, for ranks that are threads named by their numbers."""

    Work = object

    def __init__(self, seed: int) -> None:
        self.wires: dict[tuple[int, int, int], Wire] = {}
        self.lock = threading.Lock()
        self.random = random.Random(seed)

    def wire(self, source: int, target: int, tag: int) -> Wire:
        with self.lock:
            return self.wires.setdefault((source, target, tag), Wire())

    def irecv(self, buffer: torch.Tensor, src: int, tag: int) -> Receive:
        delay = self.random.choice([0.0, 0.0, 0.001, 0.003])
        return Receive(self.wire(src, int(threading.current_thread().name), tag), buffer, delay)

    def isend(self, carried: torch.Tensor, dst: int, tag: int) -> Send:
        over = threading.Event()
        self.wire(int(threading.current_thread().name), dst, tag).sent.put((carried, over))
        return Send(over)


@pytest.fixture
def slot(tmp_path: Path) -> StatusSlot:
    rank_status.create(tmp_path, 1)
    return StatusSlot(tmp_path, 0)


def run_ranks(network: Network, count: int, take_part: Callable[[int], None]) -> None:
    """Every rank takes part in a thread of its own, which bears its number; their errors are raised here."""
    errors: list[BaseException] = []

    def noted(rank: int) -> None:
        try:
            take_part(rank)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backend, "dist", network)
        ranks = [threading.Thread(target=noted, args=(rank,), name=str(rank)) for rank in range(count)]
        for thread in ranks:
            thread.start()
        for thread in ranks:
            thread.join(2 * GIVE_UP_SECONDS)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in ranks)


def held_in_the_end(
    schedule: Schedule, slot: StatusSlot, floats: int, sends: Any, seed: int, calls: int = 2
) -> tuple[list[torch.Tensor], list[Recorder]]:
    """What each rank has after the last call, and its record; every call starts from the same numbers."""
    network = Network(seed)
    data = [contribution(schedule, rank, floats) for rank in range(schedule.ranks)]
    recorders = [Recorder() for _ in data]

    def take_part(rank: int) -> None:
        own = data[rank].clone()
        playing = runner_of(ScheduleTask(schedule, rank, floats, sends), slot)
        for call in range(calls):
            data[rank].copy_(own)
            time.sleep(random.Random(seed + rank + call).random() * 0.004)
            playing.run(data[rank], call, recorders[rank], more=call + 1 < calls)

    run_ranks(network, schedule.ranks, take_part)
    return data, recorders


def eight(schedule: Schedule, rank: int, slot: StatusSlot) -> ScheduleRunner:
    """The run of `rank` in a schedule over eight numbers."""
    return runner_of(ScheduleTask(schedule, rank, 8, "rendezvous"), slot)


def wrong_chunks(schedule: Schedule, held: list[torch.Tensor]) -> list[tuple[int, int]]:
    """(rank, chunk) of what is not the sum of all that was held of the chunk at the start, though it is wanted."""
    floats = len(held[0])
    total = torch.stack([contribution(schedule, rank, floats) for rank in range(schedule.ranks)]).sum(dim=0)
    bounds = schedule.chunk_bounds(floats)
    everything = [(rank, chunk) for rank in range(schedule.workers) for chunk in range(schedule.chunks)]
    return [
        (rank, chunk)
        for rank, chunk in (everything if schedule.end is None else sorted(schedule.end))
        if not torch.equal(held[rank][bounds[chunk] : bounds[chunk + 1]], total[bounds[chunk] : bounds[chunk + 1]])
    ]


BUILT_IN: list[Schedule] = [
    ring(1), ring(2), ring(5), tree(1), tree(6), halving_doubling(4), halving_doubling(6), hierarchical(6, 3),
    parameter_server(3), parameter_server(3, 2), parameter_server(4, 4, colocated=True), broadcast(5), scatter(5),
    gather(5), reduce(5), all_gather(5), reduce_scatter(5), all_to_all(4),
    *(row.schedule(Topology(workers=7)) for row in COLLECTIVES.values()),
]  # fmt: skip
BOTH = ("rendezvous", "eager")


@pytest.mark.parametrize("sends", BOTH)
@pytest.mark.parametrize("gate", ["process", "data"])
@pytest.mark.parametrize("schedule", BUILT_IN, ids=lambda one: f"{one.name}-{one.ranks}")
def test_everyone_ends_with_what_it_wants(schedule: Schedule, gate: Any, sends: str, slot: StatusSlot) -> None:
    """Under either gate, whichever the schedule is written for."""
    held, _ = held_in_the_end(replace(schedule, gate=gate), slot, floats=31, sends=sends, seed=5)
    assert wrong_chunks(schedule, held) == []


@st.composite
def some_all_reduce(draw: Callable[..., Any]) -> Schedule:
    """Each chunk is summed up along a random tree and spread along another, in random rounds."""
    workers, chunks = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    rounds: dict[int, list[Transfer]] = {}
    for chunk in range(chunks):
        ranks = draw(st.permutations(range(workers)))
        number = draw(st.integers(0, 3))
        # ranks[i] has heard from all later ones of its branch before it is heard of; the way back likewise.
        up = [(ranks[i], ranks[draw(st.integers(0, i - 1))], True) for i in range(workers - 1, 0, -1)]
        down = [(ranks[draw(st.integers(0, i - 1))], ranks[i], False) for i in range(1, workers)]
        for source, target, adds in (*up, *down):
            rounds.setdefault(number, []).append(Transfer(source, target, chunk, adds))
            number += draw(st.integers(1, 2))
    ordered = tuple(tuple(rounds.get(number, ())) for number in range(max(rounds) + 1))
    return Schedule("of one's own", workers, chunks, ordered, gate=draw(st.sampled_from(["process", "data"])))


@settings(max_examples=60)
@given(schedule=some_all_reduce(), sends=st.sampled_from(BOTH), seed=st.integers(0, 99), floats=st.integers(1, 9))
def test_any_schedule_comes_to_its_end_with_the_sum(schedule: Schedule, sends: str, seed: int, floats: int) -> None:
    schedule.check()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatusSlot, "__init__", lambda *_: None)
        patched.setattr(StatusSlot, "doing", lambda *_, **__: None)
        held, recorders = held_in_the_end(schedule, StatusSlot(Path(), 0), floats, sends, seed)
    assert wrong_chunks(schedule, held) == []
    bounds = schedule.chunk_bounds(floats)
    sizes = np.array([bounds[t.chunk + t.chunks] - bounds[t.chunk] for _, t in schedule.transfers()])
    sources = np.array([transfer.source for _, transfer in schedule.transfers()])
    targets = np.array([transfer.target for _, transfer in schedule.transfers()])
    for rank, recorder in enumerate(recorders):
        counted = recorder.tally.table()
        for direction, own, others in (("sent", sources, targets), ("received", targets, sources)):
            by_rank = {other: sizes[(own == rank) & (others == other)] for other in range(schedule.ranks)}
            assert counted[direction] == {
                str(other): [2 * (found > 0).sum(), 2 * 4 * found.sum()]
                for other, found in by_rank.items()
                if any(found)
            }


@pytest.mark.parametrize("gate", ["process", "data"])
def test_what_leaves_in_a_round_is_what_was_there_when_it_began(gate: Any, slot: StatusSlot) -> None:
    """Two ranks swap a chunk and add: each sends what the other's message changes."""
    swap = Schedule("swap", 2, 1, ((Transfer(0, 1, 0, True), Transfer(1, 0, 0, True)),), gate=gate)
    for seed in range(10):
        held, _ = held_in_the_end(swap, slot, floats=1000, sends="rendezvous", seed=seed)
        assert wrong_chunks(swap, held) == []


def test_a_chunk_goes_on_when_it_has_come_whatever_else_is_awaited(slot: StatusSlot) -> None:
    """Rank 1 hands on chunk 1, which has come, while chunk 0, of an earlier round, is still on its way to it."""
    relay = Schedule(
        "relay", 4, 2,
        ((Transfer(0, 1, 0, False),), (Transfer(2, 1, 1, False),), (Transfer(1, 3, 1, False),)),
        gate="data", start=frozenset({(0, 0), (2, 1)}), end=frozenset({(1, 0), (3, 1)}),
    )  # fmt: skip
    relay.check()
    late = 0.3
    ends: dict[int, float] = {}
    begin = time.monotonic()

    def take_part(rank: int) -> None:
        if rank == 0:
            time.sleep(late)
        data = contribution(relay, rank, 8)
        eight(relay, rank, slot).run(data, 0, Recorder(), more=False)
        ends[rank] = time.monotonic() - begin

    run_ranks(Network(0), relay.ranks, take_part)
    assert ends[3] < late < ends[1]


class SlowTag(Network):
    """Messages with one tag take long."""

    def __init__(self, tag: int) -> None:
        super().__init__(0)
        self.slow = tag

    def irecv(self, buffer: torch.Tensor, src: int, tag: int) -> Receive:
        return Receive(self.wire(src, int(threading.current_thread().name), tag), buffer, 0.1 * (tag == self.slow))


def test_what_comes_early_waits_for_what_was_to_come_before(slot: StatusSlot) -> None:
    """Rank 0 is sent rank 1's part, which it needs not, and then the whole sum, which overtakes the part."""
    needless = Schedule(
        "needless", 3, 1,
        ((Transfer(1, 0, 0, True), Transfer(0, 2, 0, True), Transfer(1, 2, 0, True)),
         (Transfer(2, 0, 0, False), Transfer(2, 1, 0, False))),
        gate="data",
    )  # fmt: skip
    needless.check()
    data = [contribution(needless, rank, 8) for rank in range(3)]
    run_ranks(
        SlowTag(0), 3,
        lambda rank: eight(needless, rank, slot).run(data[rank], 0, Recorder(), more=False),
    )  # fmt: skip
    assert wrong_chunks(needless, data) == []


def test_what_comes_early_waits_for_what_was_to_leave_before(slot: StatusSlot) -> None:
    """Rank 1 sends chunk 1 together with chunk 0, which comes late, after what is to be added to chunk 1 has come."""
    together = Schedule(
        "together", 4, 2,
        (
            (Transfer(0, 1, 0, False),),
            (Transfer(1, 3, 0, False, chunks=2), Transfer(2, 1, 1, True)),
            (Transfer(2, 3, 1, True),),
        ),
        gate="data", start=frozenset({(0, 0), (1, 1), (2, 1)}), end=frozenset({(3, 0), (1, 1), (3, 1)}),
    )  # fmt: skip
    together.check()
    data = [contribution(together, rank, 8) for rank in range(4)]
    run_ranks(
        SlowTag(0), 4,
        lambda rank: eight(together, rank, slot).run(data[rank], 0, Recorder(), more=False),
    )  # fmt: skip
    assert wrong_chunks(together, data) == []


@pytest.mark.parametrize("gate", ["process", "data"])
@pytest.mark.parametrize("sends", BOTH)
def test_an_eager_source_is_through_before_its_target_joins(gate: Any, sends: Any, slot: StatusSlot) -> None:
    one_way = Schedule(
        "send", 2, 1, ((Transfer(0, 1, 0, False),),), gate=gate, start=frozenset({(0, 0)}), end=frozenset({(1, 0)})
    )
    late = 0.3
    recorders = [Recorder(), Recorder()]
    both_had_the_first = threading.Barrier(2)
    ends: dict[int, float] = {}

    def take_part(rank: int) -> None:
        data = contribution(one_way, rank, 8)
        playing = runner_of(ScheduleTask(one_way, rank, 8, sends), slot)
        playing.run(data, 0, Recorder(), more=True)
        both_had_the_first.wait()
        begin = time.monotonic()
        time.sleep(late * rank)
        playing.run(data, 1, recorders[rank], more=False)
        ends[rank] = time.monotonic() - begin

    run_ranks(Network(0), 2, take_part)
    assert ends[1] >= late
    assert (ends[0] < late) == (sends == "eager")
    ((_, _, _, came),), ((_, _, left, _),) = recorders[1]._rows["receives"], recorders[0]._rows["sends"]
    assert (came - left < late / 2) == (sends == "eager"), "it is noticed when it comes, not when it is asked for"


@given(schedule=some_all_reduce())
@settings(max_examples=30)
def test_a_schedule_survives_its_way_to_the_ranks(schedule: Schedule) -> None:
    assert schedule_of(table_of(schedule)) == schedule


@pytest.mark.parametrize("schedule", BUILT_IN, ids=lambda one: f"{one.name}-{one.ranks}")
def test_every_built_in_schedule_survives_its_way_to_the_ranks(schedule: Schedule) -> None:
    assert schedule_of(table_of(schedule)) == schedule
