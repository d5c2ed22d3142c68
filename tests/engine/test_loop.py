"""The loop: what it refuses, what it says to a rule that decides nonsense, and long runs."""

# ruff: noqa: ARG002 - rules here have the signature that engines call

from __future__ import annotations

import math
from dataclasses import fields
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from distsim.engine import loop, story
from distsim.engine.step_log import ARRIVED, StepLog
from distsim.engine.steps import Steps
from distsim.errors import InputError
from distsim.metrics import summary
from distsim.policies import Decision, rule_errors
from distsim.scenario import Scenario
from distsim.trace import SpanKind, violations

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


@pytest.mark.parametrize("engine", [story, loop])
@pytest.mark.parametrize("rule", [Twice, Backwards, Old, Silent])
def test_what_a_rules_author_is_told_stands_in_one_place(
    rule: type[Any], engine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(worker: int, step: int, *_words: str) -> InputError:
        return InputError(f"one place, about {worker} and {step}")

    monkeypatch.setattr(rule_errors, "_error", told)
    with pytest.raises(InputError, match=r"^one place, about \d and \d+$"):
        engine.run(scenario(ASYNCHRONOUS), rule=rule())


@pytest.mark.parametrize("rule", [Twice, Old])
def test_the_worker_named_is_the_one_asked_about_though_others_come_while_the_server_applies(rule: type[Any]) -> None:
    found = scenario(ASYNCHRONOUS, communication={"receive": "concurrent"})
    said = []
    for engine in (story, loop):
        with pytest.raises(InputError) as caught:
            engine.run(found, apply_seconds=20e-3, rule=rule())
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


class FirstInWins:
    """Cancels everybody else at once, over and over."""

    cancel = True
    version = 0

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        self.version += 1
        return Decision(self.version, answers=tuple((one, self.version) for one in range(4)))


def test_a_step_is_cancelled_once_however_often_newer_parameters_overtake_older_ones() -> None:
    """Worker 3 receives so slowly that the others' next gradients come first, and it is answered anew."""
    slow = {"compute": {"slow": {"3": 3.0}}, "cluster": {"nic": {"3": {"down": "10 MB/s"}}}}
    found = scenario({"kind": "backup", "backups": 1, "cancel": True}, steps=4, **slow)
    one, other = (engine.run(found, rule=FirstInWins()) for engine in (story, loop))
    for trace in (one, other):
        ends = trace.spans.end_seconds[(trace.spans.worker == 3) & (trace.spans.kind == SpanKind.COMPUTE)]
        assert ends == pytest.approx(one.updates.time_seconds[:1], rel=1e-9)


class TwiceEach(FirstInWins):
    """Answers everybody, and takes that back with another answer."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:
        decision = super().arrived(worker, step, read_version)
        return Decision(decision.version, answers=decision.answers * 2)


def test_a_second_answer_takes_the_place_of_the_first() -> None:
    found = scenario({"kind": "backup", "backups": 1, "cancel": True})
    assert loop.run(found, rule=TwiceEach()) == loop.run(found, rule=FirstInWins())


def test_columns_hold_what_rows_said() -> None:
    """More rows than were expected, packed at three times; who got less far comes later."""
    log = StepLog(expected=3)
    rows = [[n % 5, n // 5, n // 7, *(n + part / 8 for part in range(7)), math.nan] for n in range(11)]
    for first, last in ((0, 2), (2, 9)):
        for row in rows[first:last]:
            log.numbers += row
        log.pack()
    on_its_way = [*rows[9][:ARRIVED], *[math.nan] * (len(rows[9]) - ARRIVED)]
    steps = log.steps([on_its_way, rows[10]], updates=[1.0, 2.0])
    expected = [*rows[:9], rows[10], on_its_way]
    for place, name in enumerate(field.name for field in fields(Steps)):
        if name != "updates":
            assert getattr(steps, name).tolist() == pytest.approx([row[place] for row in expected], nan_ok=True), name
    assert steps.updates.tolist() == [1.0, 2.0]
    assert (steps.worker.dtype, steps.step.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize("policy", [ASYNCHRONOUS, {"kind": "backup", "backups": 1}])
def test_a_run_of_many_packings_is_the_run_of_one(policy: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = loop.run(scenario(policy))
    monkeypatch.setattr(loop, "MANY", 1)
    assert loop.run(scenario(policy)) == expected


def test_the_engine_is_told() -> None:
    assert loop.run(scenario(ASYNCHRONOUS)).metadata["engine"] == "loop"
