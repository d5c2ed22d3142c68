"""Rules without a clock: what a server decides, whatever the order in which gradients arrive."""

from __future__ import annotations

import ast
import inspect
from dataclasses import FrozenInstanceError, is_dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distsim.policies
from distsim.policies import (
    POLICIES,
    Asynchronous,
    Backup,
    Ddp,
    Decision,
    FlexRR,
    LocalSgd,
    Pipeline,
    Policy,
    Rule,
    Sharded,
    StaleSynchronous,
    Synchronous,
    read_policy,
    smallest_table,
    write_policy,
)

MODULES = sorted(Path(inspect.getfile(distsim.policies)).parent.glob("*.py"))


class Workers:
    """Workers in front of a rule: each is at one step with one version, and its gradient arrives when it is told to."""

    def __init__(self, rule: Rule, workers: int) -> None:
        self.rule = rule
        self.step = dict.fromkeys(range(workers), 0)
        self.version = dict.fromkeys(range(workers), 0)
        self.sending = set(range(workers))
        self.decisions: list[tuple[int, int, Decision]] = []  # worker, version it had read, decision

    def arrive(self, worker: int) -> Decision:
        read = self.version[worker]
        decision = self.rule.arrived(worker, self.step[worker], read)
        self.sending.discard(worker)
        for answered, version in decision.answers:
            self.step[answered] += 1
            self.version[answered] = version
            self.sending.add(answered)
        self.decisions.append((worker, read, decision))
        return decision

    def run(self, data: st.DataObject, arrivals: int) -> None:
        for _ in range(arrivals):
            if not self.sending:
                break
            self.arrive(data.draw(st.sampled_from(sorted(self.sending))))


# Synchronous


@given(st.data(), st.integers(1, 8))
def test_synchronous_answers_all_at_the_last_arrival_and_nobody_before(data: st.DataObject, workers: int) -> None:
    front = Workers(Synchronous().rule(workers), workers)
    for step in range(5):
        order = data.draw(st.permutations(range(workers)))
        for worker in order[:-1]:
            assert front.arrive(worker) == Decision(version=None, applied=True, answers=())
        last = front.arrive(order[-1])
        assert last == Decision(step + 1, applied=True, answers=tuple((worker, step + 1) for worker in range(workers)))


@given(st.data(), st.integers(1, 8), st.integers(0, 60))
def test_synchronous_uses_one_gradient_of_every_worker_per_version(
    data: st.DataObject, workers: int, arrivals: int
) -> None:
    front = Workers(Synchronous().rule(workers), workers)
    front.run(data, arrivals)
    assert len(front.decisions) == arrivals
    for start in range(0, arrivals - workers + 1, workers):
        arrived = front.decisions[start : start + workers]
        assert sorted(worker for worker, _, _ in arrived) == list(range(workers))
        assert {read for _, read, _ in arrived} == {start // workers}
    assert all(decision.applied for _, _, decision in front.decisions)


# Backup workers


@given(st.data(), st.integers(1, 8), st.booleans())
def test_backup_makes_a_version_of_the_first_workers_minus_backups(
    data: st.DataObject, workers: int, cancel: bool
) -> None:
    backups = data.draw(st.integers(0, workers - 1))
    front = Workers(Backup(backups, cancel).rule(workers), workers)
    front.run(data, 60)
    version, fresh = 0, 0
    for _, read, decision in front.decisions:
        late = read < version
        assert decision.applied is not late
        fresh += not late
        if fresh < workers - backups or late:
            assert decision.version is None
        else:
            version, fresh = version + 1, 0
            assert decision.version == version


@given(st.data(), st.integers(1, 8))
def test_backup_drops_a_late_gradient_and_answers_its_worker_alone(data: st.DataObject, workers: int) -> None:
    backups = data.draw(st.integers(0, workers - 1))
    front = Workers(Backup(backups).rule(workers), workers)
    front.run(data, 60)
    version, waiting = 0, []
    for worker, read, decision in front.decisions:
        if read < version:
            assert decision == Decision(None, applied=False, answers=((worker, version),))
            continue
        waiting.append(worker)
        if decision.version is None:
            assert decision.answers == ()
            continue
        version = decision.version
        assert decision.answers == tuple((each, version) for each in sorted(waiting))
        waiting = []


@given(st.data(), st.integers(1, 8))
def test_cancelling_backup_answers_all_and_so_has_no_late_gradients(data: st.DataObject, workers: int) -> None:
    backups = data.draw(st.integers(0, workers - 1))
    front = Workers(Backup(backups, cancel=True).rule(workers), workers)
    front.run(data, 60)
    for _, _, decision in front.decisions:
        assert decision.applied
        if decision.version is not None:
            assert decision.answers == tuple((worker, decision.version) for worker in range(workers))
        else:
            assert decision.answers == ()


def test_a_cancelled_gradient_that_arrives_all_the_same_is_dropped() -> None:
    rule = Backup(backups=1, cancel=True).rule(2)
    assert rule.arrived(0, 0, read_version=0) == Decision(1, answers=((0, 1), (1, 1)))
    assert rule.arrived(1, 0, read_version=0) == Decision(None, applied=False, answers=((1, 1),))


@given(st.data(), st.integers(1, 8), st.booleans())
def test_backup_without_backups_decides_as_synchronous_does(data: st.DataObject, workers: int, cancel: bool) -> None:
    one, other = Workers(Synchronous().rule(workers), workers), Workers(Backup(0, cancel).rule(workers), workers)
    for _ in range(5):
        for worker in data.draw(st.permutations(range(workers))):
            assert one.arrive(worker) == other.arrive(worker)


@given(st.data(), st.integers(1, 8), st.sampled_from(["synchronous", "backup", "cancel"]))
def test_nobody_starves_and_versions_never_go_back(data: st.DataObject, workers: int, kind: str) -> None:
    backups = data.draw(st.integers(0, workers - 1))
    policy = Synchronous() if kind == "synchronous" else Backup(backups, cancel=kind == "cancel")
    front = Workers(policy.rule(workers), workers)
    before = dict(front.version)
    for _ in range(40):
        assert front.sending, "every worker waits and nothing is on its way"
        front.arrive(data.draw(st.sampled_from(sorted(front.sending))))
        assert all(front.version[worker] >= before[worker] for worker in before)
        before = dict(front.version)
    versions = [decision.version for _, _, decision in front.decisions if decision.version is not None]
    assert versions == list(range(1, len(versions) + 1))


def test_each_run_gets_a_fresh_rule() -> None:
    for policy in (Synchronous(), Backup(1)):
        first = policy.rule(2)
        assert first.arrived(0, 0, 0) == policy.rule(2).arrived(0, 0, 0)
        assert policy.rule(2) is not first


@given(st.data(), st.integers(1, 6))
def test_asynchronous_answers_each_at_once_with_the_version_it_made(data: st.DataObject, workers: int) -> None:
    rule = Asynchronous().rule(workers)
    arrivals = data.draw(st.lists(st.integers(0, workers - 1), max_size=30))
    for number, worker in enumerate(arrivals, start=1):
        assert rule.arrived(worker, 0, 0) == Decision(number, answers=((worker, number),))


@given(st.data(), st.integers(1, 6), st.integers(0, 4))
def test_nobody_starts_a_step_more_than_staleness_ahead(data: st.DataObject, workers: int, staleness: int) -> None:
    front = Workers(StaleSynchronous(staleness).rule(workers), workers)
    front.run(data, arrivals=60)
    steps = dict.fromkeys(range(workers), 0)
    for worker, _, decision in front.decisions:
        steps[worker] += 1
        for answered, version in decision.answers:
            assert steps[answered] - min(steps.values()) <= staleness
            assert version == decision.version
    # Nobody is held without need.
    held = set(range(workers)) - front.sending
    assert all(steps[worker] - min(steps.values()) > staleness for worker in held)


# The policies as descriptions


ONE_OF_EACH = [
    *(read_policy(smallest_table(kind)) for kind in POLICIES),
    Synchronous(),
    Backup(2),
    Backup(1, cancel=True),
    Asynchronous(touched=0.1, stop="per_worker"),
    StaleSynchronous(3),
    FlexRR(items=4),
    LocalSgd(5),
    Ddp(bucket_bytes=2.0**22, accumulate=2),
    Sharded(stage=3, bucket_bytes=2.0**20, prefetch=2),
    Pipeline(4, schedule="1f1b"),
]


@pytest.mark.parametrize("policy", ONE_OF_EACH)
def test_a_policy_is_written_and_read_back(policy: Policy) -> None:
    table = write_policy(policy)
    assert table["kind"] == policy.kind
    assert ("cancel" in table) is getattr(policy, "cancel", False)
    assert read_policy(table) == policy
    assert read_policy(policy) is policy


def test_policies_are_frozen_dataclasses_with_a_kind_each() -> None:
    assert {type(policy) for policy in ONE_OF_EACH} == set(POLICIES.values())
    assert all(type(read_policy(smallest_table(kind))) is policy for kind, policy in POLICIES.items())
    assert all(POLICIES[policy.kind] is policy for policy in POLICIES.values())
    for policy in POLICIES.values():
        assert is_dataclass(policy)
    with pytest.raises(FrozenInstanceError):
        Backup(1).backups = 2  # type: ignore[misc]


@pytest.mark.parametrize(("backups", "workers", "fine"), [(0, 1, True), (3, 4, True), (4, 4, False), (9, 4, False)])
def test_somebody_must_be_left_to_wait_for(backups: int, workers: int, fine: bool) -> None:
    if fine:
        Backup(backups).check_workers(workers)
        return
    with pytest.raises(ValueError, match=f"backups = {backups} must be fewer than the {workers} workers"):
        Backup(backups).check_workers(workers)


def test_a_run_ends_after_as_many_updates_as_steps() -> None:
    assert Synchronous().updates(steps=50, workers=4) == Backup(1).updates(steps=50, workers=4) == 50


def test_cancelling_needs_a_server() -> None:
    assert Backup.server == "required"
    assert Synchronous.server == "possible"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_rule_has_no_clock_no_arrays_and_no_network(path: Path) -> None:
    imported = set()
    described = "distsim.workload"  # which a program takes as an argument, and whose name types know
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module))
    packages = {name.partition(".")[0] for name in imported}
    assert packages.isdisjoint({"simpy", "numpy", "torch", "time", "asyncio", "threading", "scipy", "random"})
    ours = {name for name in imported if name.startswith("distsim")}
    below = (
        "distsim.policies",
        "distsim.validated_table",
        "distsim.scenario_errors",
        "distsim.units",
        "distsim.own_code",
        "distsim.errors",
        "distsim.groups",
    )
    assert all(name.startswith(below) for name in ours - {described})
    if path.stem in {*POLICIES, "rule"}:
        assert packages <= {
            "__future__",
            "dataclasses",
            "typing",
            "annotated_types",
            "pydantic",
            "itertools",
            "abc",
            "distsim",
        }
