"""Any schedule, whatever its kind is called: the engine that "auto" takes gives the story's trace."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from distsim.collectives import ALL_REDUCES, Schedule, Topology, Transfer
from distsim.engine import recurrence, story
from distsim.engine.selection import fastest
from distsim.scenario import Scenario
from tests.engine.test_engines import assert_same

UNSHARED = ["ring", "tree", "halving_doubling"]  # kinds of which variants are made


class Rounds:
    """Rounds to place transfers in. one_at_a_time: no rank sends twice, or receives twice, in a round."""

    def __init__(self, generator: random.Random, *, one_at_a_time: bool) -> None:
        self.generator = generator
        self.one_at_a_time = one_at_a_time
        self.rounds: list[list[Transfer]] = []

    def place(self, transfer: Transfer, earliest: int) -> int:
        """Places it in some round from `earliest` on, and returns the round after that."""
        number = earliest + self.generator.choice([0, 0, 0, 1, 2])
        while True:
            self.rounds += [[] for _ in range(number + 1 - len(self.rounds))]
            members = self.rounds[number]
            taken = any(one.source == transfer.source or one.target == transfer.target for one in members)
            if not (self.one_at_a_time and taken):
                members.append(transfer)
                return number + 1
            number += 1

    def schedule(self, name: str, workers: int, chunks: int, gate: Any) -> Schedule:
        return Schedule(name, workers, chunks, tuple(tuple(members) for members in self.rounds if members), gate=gate)


def random_trees(generator: random.Random, workers: int, *, one_at_a_time: bool) -> Schedule:
    """An all-reduce in which every message of chunks climbs a random tree of ranks, and comes down another."""
    chunks = generator.randint(1, 4)
    bounds = sorted({0, chunks, *(generator.randint(0, chunks) for _ in range(2))})
    rounds = Rounds(generator, one_at_a_time=one_at_a_time)
    for first, last in pairwise(bounds):
        ranks = generator.sample(range(workers), workers)
        parents = [generator.randrange(child) for child in range(1, workers)]
        ready = [0] * workers  # the round from which on each may send its sum
        for child in range(workers - 1, 0, -1):
            parent = parents[child - 1]
            up = Transfer(ranks[child], ranks[parent], first, reduce=True, chunks=last - first)
            ready[parent] = max(ready[parent], rounds.place(up, ready[child]))
        holds = {0: ready[0]}
        for child in generator.sample(range(1, workers), workers - 1):
            parent = generator.choice(list(holds))
            down = Transfer(ranks[parent], ranks[child], first, reduce=False, chunks=last - first)
            holds[child] = rounds.place(down, holds[parent])
    return rounds.schedule("trees", workers, chunks, generator.choice(["process", "process", "data"]))


def uneven_ring(generator: random.Random, workers: int) -> Schedule:
    """A ring whose chunks go around when they like: a rank may only receive for some rounds, from its neighbour."""
    rounds = Rounds(generator, one_at_a_time=True)
    chunks = generator.randint(1, workers)
    for chunk in generator.sample(range(chunks), chunks):
        ready = 0
        for hop in range(2 * (workers - 1)):
            source = (chunk + hop) % workers
            ready = rounds.place(Transfer(source, (source + 1) % workers, chunk, reduce=hop < workers - 1), ready)
    return rounds.schedule("uneven ring", workers, chunks, "process")


def variant(generator: random.Random, schedule: Schedule) -> Schedule:
    """A known schedule with other ranks, another gate, or two rounds in one."""
    ranks = generator.sample(range(schedule.workers), schedule.workers)
    rounds = [
        tuple(replace(one, source=ranks[one.source], target=ranks[one.target]) for one in members)
        for members in schedule.rounds
    ]
    match generator.choice(["ranks", "gate", "rounds", "same"]):
        case "same":
            return schedule
        case "gate":
            return replace(schedule, gate="data" if schedule.gate == "process" else "process")
        case "rounds" if len(rounds) > 1:
            at = generator.randrange(len(rounds) - 1)
            rounds[at : at + 2] = [(*rounds[at], *rounds[at + 1])]
    return replace(schedule, rounds=tuple(rounds))


def schedules(seed: int, workers: int) -> Iterator[Schedule]:
    generator = random.Random(seed)
    yield random_trees(generator, workers, one_at_a_time=False)
    yield random_trees(generator, workers, one_at_a_time=True)
    yield uneven_ring(generator, workers)
    yield variant(generator, ALL_REDUCES[generator.choice(UNSHARED)].schedule(Topology(workers)))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    workers = draw(st.integers(2, 6))
    nodes = {
        "per_node": 2,
        "bandwidth": "3 GB/s",
        "latency": "2 us",
        "nic_per": draw(st.sampled_from(["node", "worker"])),
    }
    slow = {draw(st.sampled_from(["0", "2", "4"])): {"up": "70 MB/s"}, "0": {"down": "300 MB/s"}}
    fits = {host: nic for host, nic in slow.items() if int(host) < workers}
    table: dict[str, Any] = {
        "steps": 3,
        "seed": draw(st.integers(0, 99)),
        "cluster": {
            "workers": workers, "bandwidth": "1 GB/s", "latency": draw(st.sampled_from(["0 s", "300 us"])),
            **draw(st.sampled_from([{}, {}, {"nodes": nodes}])), **draw(st.sampled_from([{}, {"nic": fits}])),
        },
        "compute": draw(st.sampled_from([{"mean": "1 ms"}, {"distribution": "exponential", "mean": "3 ms"}])),
        "workload": {"gradient": "1 MB", "layers": 4},
        "policy": draw(
            st.sampled_from(
                [{"kind": "synchronous"}, {"kind": "local_sgd", "period": 2}, {"kind": "ddp", "bucket": "400 kB"}]
            )
        ),
        "communication": {"kind": "ring", "sends": draw(st.sampled_from(["eager", "rendezvous"]))},
    }  # fmt: skip
    return Scenario.of(table)


@settings(max_examples=150)
@given(scenarios(), st.integers(0, 10**6))
def test_no_schedule_reaches_a_recurrence_that_is_not_exact_for_it(scenario: Scenario, seed: int) -> None:
    for schedule in schedules(seed, scenario.cluster.workers):
        try:
            schedule.check()
        except ValueError:
            continue  # two rounds in one need not be right
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(ALL_REDUCES, "ring", replace(ALL_REDUCES["ring"], schedule=lambda _, found=schedule: found))
            engine = fastest(scenario)
            event(f"{schedule.name}: {engine}")
            assert engine == ("story" if recurrence.cannot(scenario) else "recurrence")
            if engine == "recurrence":
                assert_same(story.run(scenario), recurrence.run(scenario))
