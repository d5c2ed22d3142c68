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
from distsim.engine.choice import fastest
from distsim.scenario import Scenario
from tests.engine.test_engines import assert_same

UNSHARED = ["ring", "tree", "halving_doubling"]  # kinds of which variants are made


def random_schedule(generator: random.Random, workers: int, *, one_at_a_time: bool) -> Schedule:
    """An all-reduce in which every message of chunks climbs a random tree of ranks, and comes down another.

    A transfer is in a random later round than those that it needs. one_at_a_time: and in one in which its source has
    no other send, and its target no other receive.
    """
    chunks = generator.randint(1, 4)
    bounds = sorted({0, chunks, *(generator.randint(0, chunks) for _ in range(2))})
    rounds: list[list[Transfer]] = []

    def place(transfer: Transfer, earliest: int) -> int:
        number = earliest + generator.choice([0, 0, 0, 1, 2])
        while True:
            while number >= len(rounds):
                rounds.append([])
            taken = any(one.source == transfer.source or one.target == transfer.target for one in rounds[number])
            if not (one_at_a_time and taken):
                rounds[number].append(transfer)
                return number
            number += 1

    for first, last in pairwise(bounds):
        ranks = generator.sample(range(workers), workers)
        parents = [generator.randrange(index) for index in range(1, workers)]
        ready = [0] * workers  # by place, the round in which it may send its sum
        for child in range(workers - 1, 0, -1):
            up = Transfer(ranks[child], ranks[parents[child - 1]], first, reduce=True, chunks=last - first)
            ready[parents[child - 1]] = max(ready[parents[child - 1]], place(up, ready[child]) + 1)
        others = generator.sample(range(1, workers), workers - 1)
        holds = {0: ready[0]}
        for child in others:
            parent = generator.choice(list(holds))
            down = Transfer(ranks[parent], ranks[child], first, reduce=False, chunks=last - first)
            holds[child] = place(down, holds[parent]) + 1
    found = tuple(tuple(members) for members in rounds if members)
    return Schedule("random", workers, chunks, found, gate=generator.choice(["process", "process", "data"]))


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
    yield random_schedule(generator, workers, one_at_a_time=False)
    yield random_schedule(generator, workers, one_at_a_time=True)
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
