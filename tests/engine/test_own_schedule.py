"""A schedule of one's own in a simulated run: the times are those of the collective with the same schedule."""

from __future__ import annotations

import pytest

from distsim import example, simulate
from distsim.collectives import COLLECTIVES, Schedule, ScheduleError, Transfer, broadcast, parameter_server, ring
from distsim.collectives.table import Topology
from distsim.errors import InputError
from distsim.scenario import Scenario

STEPS = 4


def scenario(kind: str = "ring", policy: str = "synchronous") -> Scenario:
    period = {"period": 2} if policy == "local_sgd" else {}
    slow = {"1": {"up": "1 Gbit/s", "down": "1 Gbit/s"}}
    table = {"communication": {"kind": kind}, "policy": {"kind": policy} | period, "steps": STEPS, "cluster.nic": slow}
    return example("synchronous_ring").replacing(table)


@pytest.mark.parametrize("policy", ["synchronous", "local_sgd"])
@pytest.mark.parametrize("kind", ["ring", "tree", "halving_doubling"])
def test_the_run_is_that_of_the_collective_with_this_schedule(kind: str, policy: str) -> None:
    own = COLLECTIVES[kind].schedule(Topology(4))
    found = simulate(scenario(policy=policy), schedule=own)
    expected = simulate(scenario(kind, policy), engine="story")
    assert found.total_seconds == expected.total_seconds
    assert found.transfers == expected.transfers
    assert found.updates.time_seconds.tolist() == expected.updates.time_seconds.tolist()
    assert found.metadata["schedule"] == own.name


@pytest.mark.parametrize(
    ("found", "schedule", "rule"),
    [
        (scenario(), ring(5), "is of 5 workers"),
        (scenario(), broadcast(4), "is no all-reduce"),
        (scenario(), parameter_server(4), "4 workers and 1 servers"),
        (scenario(policy="ddp"), ring(4), "needs workers that sum among themselves"),
        (example("backup_server"), ring(5), "needs workers that sum among themselves"),
    ],
)
def test_what_cannot_replace_the_collective_is_refused(found: Scenario, schedule: Schedule, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        simulate(found, schedule=schedule)


def test_a_schedule_that_loses_a_part_is_refused() -> None:
    rounds = (
        (Transfer(1, 0, 0, True),),
        (Transfer(0, 1, 0, False), Transfer(0, 2, 0, False)),
        (Transfer(0, 3, 0, False),),
    )
    with pytest.raises(ScheduleError, match="lacks the part of worker"):
        simulate(scenario(), schedule=Schedule("short", 4, 1, rounds))


def test_no_other_word_is_an_engine() -> None:
    with pytest.raises(InputError, match="is not an engine"):
        simulate(scenario(), schedule=ring(4), engine="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["loop", "recurrence"])
def test_only_the_story_plays_it(engine: str) -> None:
    with pytest.raises(InputError, match="has no formula for a schedule of your own"):
        simulate(scenario(), schedule=ring(4), engine=engine)
