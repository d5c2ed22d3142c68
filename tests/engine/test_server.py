"""The server story: asynchronous and stale synchronous rules, several servers, a user's own rule."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.engine import story
from distsim.errors import InputError
from distsim.metrics import step_durations, summary
from distsim.policies import Decision
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, violations


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
        table[name] = table[name] | changes if name in ("cluster", "workload", "communication") else changes
    return Scenario.of(table)


FREE = {"workload": {"gradient": "0 B"}, "cluster": {"latency": "0 s"}}
ASYNCHRONOUS = {"kind": "asynchronous"}


def compute_spans(trace: Trace) -> np.ndarray:
    spans = trace.spans.of_kind(SpanKind.COMPUTE).sorted()
    return np.stack([spans.worker, spans.step, spans.start_seconds, spans.end_seconds])


def test_asynchronous_workers_never_wait_where_communication_is_free() -> None:
    trace = simulate(scenario(ASYNCHRONOUS, **FREE))
    times = trace.scenario.compute_times()
    for worker in range(4):
        own = trace.spans.of_kind(SpanKind.COMPUTE)
        own = own.where(own.worker == worker)
        ends = np.cumsum(times.first(worker, len(own))[: len(own)])
        assert own.end_seconds == pytest.approx(ends, rel=1e-12)
    assert len(trace.updates) == 80
    assert summary(trace).idle_share == pytest.approx(0.0, abs=1e-12)


def test_staleness_is_the_updates_since_the_read() -> None:
    """Constant times: workers 0, 1, 2, 3 arrive in turn, so each gradient is three versions old, the first less."""
    trace = simulate(scenario(ASYNCHRONOUS, compute={"mean": "10 ms"}, **FREE))
    assert trace.contributions.staleness.tolist() == [0, 1, 2, 3] + [3] * 76


def test_asynchronous_throughput_and_staleness_of_exponential_times() -> None:
    """One update every E[X]/P, and mean staleness P - 1, in the long run (Dutta et al. 2018)."""
    free = FREE | {"cluster": {"latency": "0 s", "workers": 8}}
    trace = simulate(scenario(ASYNCHRONOUS, compute={"distribution": "exponential", "mean": "1 s"}, steps=600, **free))
    gaps = np.diff(trace.updates.time_seconds)[480:]
    assert gaps.mean() == pytest.approx(1 / 8, abs=4 * gaps.std() / np.sqrt(len(gaps)))
    staleness = trace.contributions.staleness[480:]
    batches = staleness[: len(staleness) // 40 * 40].reshape(40, -1).mean(axis=1)
    assert staleness.mean() == pytest.approx(7.0, abs=4 * batches.std() / np.sqrt(40))
    share = (staleness == 0).mean()
    assert share == pytest.approx(1 / 8, abs=4 * np.sqrt(share * (1 - share) / len(staleness)))


@pytest.mark.parametrize("receive", ["concurrent", "fifo"])
@pytest.mark.parametrize("bandwidth", ["1 GB/s", "50 MB/s"])
def test_staleness_0_is_synchronous_and_without_bound_asynchronous(receive: str, bandwidth: str) -> None:
    tables = {"communication": {"receive": receive}, "cluster": {"bandwidth": bandwidth}}
    synchronous = simulate(scenario({"kind": "synchronous"}, **tables))
    zero = simulate(scenario({"kind": "stale_synchronous", "staleness": 0}, **tables))
    assert compute_spans(zero) == pytest.approx(compute_spans(synchronous), rel=1e-12)
    assert zero.total_seconds == pytest.approx(synchronous.total_seconds, rel=1e-12)
    assert len(zero.updates) == 4 * len(synchronous.updates)
    unbounded = simulate(scenario({"kind": "stale_synchronous", "staleness": 10**9}, **tables))
    asynchronous = simulate(scenario(ASYNCHRONOUS, **tables))
    assert unbounded.spans == asynchronous.spans
    assert unbounded.contributions == asynchronous.contributions


@settings(max_examples=60)
@given(st.integers(0, 4), st.integers(0, 100), st.floats(1.0, 5.0))
def test_nobody_computes_a_step_more_than_staleness_ahead(staleness: int, seed: int, slow: float) -> None:
    compute = {"distribution": "pareto", "mean": "10 ms", "alpha": 1.5, "slow": {"1": slow}}
    found = scenario({"kind": "stale_synchronous", "staleness": staleness}, compute=compute, seed=seed)
    trace = simulate(found)
    assert violations(trace) == []
    compute_of = trace.spans.of_kind(SpanKind.COMPUTE)
    for worker, step, start in zip(compute_of.worker, compute_of.step, compute_of.start_seconds, strict=True):
        behind = compute_of.where((compute_of.worker != worker) & (compute_of.step == step - staleness - 1))
        if step > staleness:
            # When this step starts, everyone has finished the step that lies `staleness` + 1 before it.
            assert (behind.end_seconds <= start + 1e-12).all()
            assert len(behind) == 3


@pytest.mark.parametrize("engine", ["story", "loop"])
@pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])
def test_a_fifo_server_receives_one_gradient_at_a_time(kind: str, engine: Any) -> None:
    """All engines write these rows by one writer, so this is no comparison of engines."""
    trace = simulate(
        scenario({"kind": kind}, communication={"receive": "fifo"}, compute={"mean": "2 ms"}), engine=engine
    )
    received = trace.spans.where((trace.spans.worker == 4) & (trace.spans.kind == SpanKind.RECEIVE)).sorted()
    assert len(received) > 40
    assert (received.start_seconds[1:] >= received.end_seconds[:-1] - 1e-12).all()
    assert (received.end_seconds - received.start_seconds).max() < 1.2e-3  # 1 MB at 1 GB/s, and the latency
    carried = trace.transfers.where(trace.transfers.target == 4)
    assert sorted(carried.start_seconds) == pytest.approx(sorted(received.start_seconds), abs=1e-12)
    sent = trace.spans.where((trace.spans.worker < 4) & (trace.spans.kind == SpanKind.SEND))
    assert (sent.end_seconds - sent.start_seconds).max() > 3e-3  # gradients of other workers come first


@pytest.mark.parametrize("engine", ["story", "loop"])
@pytest.mark.parametrize("receive", ["concurrent", "fifo"])
def test_the_spans_of_a_worker_follow_each_other_without_a_gap(receive: str, engine: Any) -> None:
    policy = {"kind": "stale_synchronous", "staleness": 1}
    trace = simulate(scenario(policy, communication={"receive": receive}), engine=engine)
    for worker in range(4):
        own = trace.spans.where(trace.spans.worker == worker)
        own = own.where(np.lexsort((own.end_seconds, own.start_seconds)))
        assert set(own.kind.tolist()) == {SpanKind.COMPUTE, SpanKind.SEND, SpanKind.WAIT, SpanKind.RECEIVE}
        assert own.start_seconds[1:] == pytest.approx(own.end_seconds[:-1], abs=1e-12)


def test_per_worker_runs_give_every_worker_its_steps() -> None:
    slow = {"mean": "10 ms", "slow": {"2": 3.0}}
    trace = simulate(scenario({"kind": "asynchronous", "stop": "per_worker"}, compute=slow))
    assert np.bincount(trace.contributions.worker).tolist() == [20] * 4
    total = simulate(scenario(ASYNCHRONOUS, compute=slow))
    assert np.bincount(total.contributions.worker)[2] < 10
    assert len(total.updates) == len(trace.updates) == 80


def test_steps_without_a_global_one_last_from_compute_to_compute() -> None:
    trace = simulate(scenario(ASYNCHRONOUS, compute={"mean": "10 ms"}, steps=5, **FREE))
    steps = step_durations(trace)
    assert steps.seconds == pytest.approx(np.full(len(steps.seconds), 10e-3))
    assert sorted(set(steps.worker.tolist())) == [0, 1, 2, 3]


def test_several_servers_share_the_load() -> None:
    one = simulate(scenario({"kind": "synchronous"}, compute={"mean": "10 ms"}))
    four = simulate(scenario({"kind": "synchronous"}, compute={"mean": "10 ms"}, communication={"servers": 4}))
    # Four times the down-links at the servers: pushes are then bound by nobody but the workers' own up-links.
    assert one.updates.time_seconds[0] == pytest.approx(10e-3 + 100e-6 + 4 * 1e-3)
    assert four.updates.time_seconds.min() == pytest.approx(10e-3 + 100e-6 + 1e-3)
    assert summary(four).updates == 20
    assert np.bincount(four.updates.server)[4:].tolist() == [20] * 4


def test_colocated_servers_exchange_nothing_with_their_own_worker() -> None:
    found = scenario(
        {"kind": "synchronous"}, compute={"mean": "10 ms"}, communication={"servers": 4, "colocated": True}
    )
    trace = simulate(found)
    assert violations(trace) == []
    ways = set(zip(trace.transfers.source.tolist(), trace.transfers.target.tolist(), strict=True))
    assert ways.isdisjoint(
        {(worker, 4 + worker) for worker in range(4)} | {(4 + worker, worker) for worker in range(4)}
    )
    # Every NIC receives three quarters of a gradient: 2 ((N - 1) S / (N B) + a) per step in all.
    assert trace.updates.time_seconds.max() == pytest.approx(
        20 * 10e-3 + 20 * (0.75e-3 + 100e-6) + 19 * (0.75e-3 + 100e-6)
    )


@settings(max_examples=60)
@given(
    st.integers(1, 5), st.integers(1, 4), st.booleans(), st.sampled_from(["synchronous", "backup"]), st.integers(0, 99),
    st.sampled_from(["concurrent", "fifo"]),
)  # fmt: skip
def test_traces_of_several_servers_are_sound(
    workers: int, servers: int, colocated: bool, kind: str, seed: int, receive: str
) -> None:
    policy = {"kind": "backup", "backups": workers - 1} if kind == "backup" else {"kind": kind}
    communication = {
        "servers": min(servers, workers) if colocated else servers,
        "colocated": colocated,
        "receive": receive,
    }
    cluster = {"workers": workers, "nic": {"0": {"up": "20 MB/s"}}}
    trace = simulate(scenario(policy, steps=6, seed=seed, communication=communication, cluster=cluster))
    assert violations(trace) == []
    assert summary(trace).updates == 6
    assert len(trace.updates) == 6 * communication["servers"]


class Twice:
    """Answers the same worker twice."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002
        self.version = getattr(self, "version", 0) + 1
        return Decision(self.version, answers=((worker, self.version),) * 2)


class Backwards:
    """Makes the same version again."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002
        return Decision(1, answers=((worker, 1),))


class Old:
    """Answers with a version that the server no longer has."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002
        self.version = getattr(self, "version", 0) + 1
        return Decision(self.version, answers=((worker, 1),))


class Silent:
    """Never answers."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002
        return Decision()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Twice, "worker 0's step 0, = 'answered worker 0': that worker waits for no answer"),
        (Backwards, "= 'made version 1': version 2 comes next"),
        (Old, "with version 1': the server holds 2"),
        (Silent, "= 'made 0 of 80 updates': every worker waits and nothing is on its way"),
    ],
)
def test_a_rule_that_decides_nonsense_is_told_about_worker_and_step(rule: type[Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        story.run(scenario(ASYNCHRONOUS, compute={"mean": "10 ms"}), rule=rule())
    assert expected in str(caught.value)
    assert "worker" in str(caught.value)
    assert "Cure:" in str(caught.value)


class DropsAll:
    """Drops each gradient, and lets its worker go on."""

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002
        return Decision(applied=False, answers=((worker, 0),))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("engine", ["story", "loop"])
def test_a_rule_that_makes_no_update_does_not_run_for_ever(engine: Literal["story", "loop"]) -> None:
    asked = scenario(ASYNCHRONOUS, compute={"mean": "10 ms"})
    with pytest.raises(InputError, match="has made no update since") as caught:
        simulate(asked, rule=DropsAll(), engine=engine)
    assert "Cure: make the next version in the end" in str(caught.value)


class EverySecond:
    """A rule of a user's own: an update of two gradients, whoever they are from; both workers go on."""

    def __init__(self) -> None:
        self.version = 0
        self.waiting: list[int] = []

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002
        self.waiting.append(worker)
        if len(self.waiting) < 2:
            return Decision()
        self.version += 1
        answered, self.waiting = self.waiting, []
        return Decision(self.version, answers=tuple((w, self.version) for w in answered))


def test_a_users_own_rule_runs() -> None:
    trace = simulate(scenario(ASYNCHRONOUS), rule=EverySecond())
    assert violations(trace) == []
    assert np.bincount(trace.contributions.version)[1:].tolist() == [2] * 80


def test_a_rule_needs_a_server() -> None:
    with pytest.raises(InputError, match="a rule of your own"):
        simulate(scenario({"kind": "synchronous"}, communication={"kind": "ring"}), rule=EverySecond())
