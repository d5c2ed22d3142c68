"""The loop: what it refuses, what it says to a rule that decides nonsense, and long runs."""

# ruff: noqa: ARG002 - rules here have the signature that engines call

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distsim.engine import loop, story
from distsim.errors import InputError
from distsim.metrics import summary
from distsim.policies import Decision
from distsim.scenario import Scenario
from distsim.trace import violations

ASYNCHRONOUS = {"kind": "asynchronous"}


def scenario(policy: dict[str, Any], **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": 20,
        "seed": 3,
        "cluster": {"workers": 4, "bandwidth": "1 GB/s", "latency": "100 us"},
        "compute": {"distribution": "lognormal", "mean": "10 ms", "cv": 0.5},
        "workload": {"gradient": "1 MB"},
        "policy": policy,
        "communication": {"kind": "parameter_server"},
    }
    for name, changes in tables.items():
        table[name] = table[name] | changes if isinstance(changes, dict) else changes
    return Scenario.of(table)


NODES = {"nodes": {"per_node": 2, "bandwidth": "300 GB/s", "latency": "2 us"}}
STAGES = {"gradient": "1 MB", "activation": "1 MB"}


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        (scenario({"kind": "synchronous"}, communication={"servers": 2}), "communication.servers = 2"),
        (scenario({"kind": "synchronous"}, communication={"colocated": True}), "communication.colocated = true"),
        (scenario(ASYNCHRONOUS, cluster=NODES), "cluster.nodes"),
        (scenario({"kind": "synchronous"}, communication={"kind": "ring"}), "'synchronous' with communication.kind"),
        (scenario({"kind": "pipeline", "micro_batches": 2}, workload=STAGES), "policy.kind = 'pipeline'"),
        (scenario({"kind": "flexrr"}), "policy.kind = 'flexrr'"),
        (scenario({"kind": "local_sgd", "period": 2}), "policy.kind = 'local_sgd'"),
    ],
)
def test_what_it_cannot_serve_is_named(found: Scenario, missing: str) -> None:
    with pytest.raises(InputError, match='Cure: take engine = "story"') as caught:
        loop.run(found)
    assert missing in str(caught.value)


class Twice:
    version = 0

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        self.version += 1
        return Decision(self.version, answers=((worker, self.version),) * 2)


class Backwards:
    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        return Decision(1, answers=((worker, 1),))


class Old:
    version = 0

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        self.version += 1
        return Decision(self.version, answers=((worker, 1),))


class Silent:
    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        return Decision()


@pytest.mark.parametrize("rule", [Twice, Backwards, Old, Silent])
def test_a_rule_that_decides_nonsense_is_told_what_the_story_tells(rule: type[Any]) -> None:
    said = []
    for engine in (story, loop):
        with pytest.raises(InputError) as caught:
            engine.run(scenario(ASYNCHRONOUS, compute={"mean": "10 ms"}), rule=rule())
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("receive", ["fifo", "concurrent"])
@pytest.mark.parametrize("policy", [ASYNCHRONOUS, {"kind": "stale_synchronous", "staleness": 2}])
def test_long_runs_agree_as_distributions(policy: dict[str, Any], receive: str) -> None:
    """A concurrent asynchronous server is chaotic: beyond the first steps engines share laws, not numbers."""
    found = scenario(policy, steps=400, communication={"receive": receive}, cluster={"nic": {"1": {"up": "70 MB/s"}}})
    one, other = story.run(found), loop.run(found)
    assert violations(other) == []
    assert other.total_seconds == pytest.approx(one.total_seconds, rel=1e-2)
    assert summary(other).mean_staleness == pytest.approx(summary(one).mean_staleness, abs=0.1)
    gaps = [np.quantile(np.diff(trace.updates.time_seconds), [0.1, 0.5, 0.9]) for trace in (one, other)]
    assert gaps[1] == pytest.approx(gaps[0], rel=0.15)


def test_fifo_runs_agree_to_the_end() -> None:
    found = scenario(ASYNCHRONOUS, steps=400)
    one, other = story.run(found), loop.run(found)
    assert other.updates.time_seconds == pytest.approx(one.updates.time_seconds, rel=1e-9)
    assert other.contributions.worker.tolist() == one.contributions.worker.tolist()


def test_the_engine_is_told() -> None:
    assert loop.run(scenario(ASYNCHRONOUS)).metadata["engine"] == "loop"
