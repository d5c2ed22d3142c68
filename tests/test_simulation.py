"""The story: against closed forms, order statistics and its own invariants."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.calibration import Calibration, Exchange
from distsim.errors import InputError
from distsim.examples import NAMES, example
from distsim.metrics import step_durations, worker_seconds
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory import collectives
from distsim.trace import SpanKind, Trace, violations
from tests.counts import reduced

HARMONIC = np.cumsum(1.0 / np.arange(1, 101))


def scenario(policy: dict[str, Any], kind: str = "parameter_server", **tables: dict[str, Any]) -> Scenario:
    table: dict[str, Any] = {
        "steps": 20,
        "seed": 3,
        "cluster": {"workers": 4, "bandwidth": "1 GB/s", "latency": "100 us"},
        "compute": {"distribution": "constant", "mean": "10 ms"},
        "workload": {"gradient": "1 MB"},
        "policy": policy,
        "communication": {"kind": kind},
    }
    for name, changes in tables.items():
        table[name] = changes if name == "compute" else table[name] | changes
    return Scenario.of(table)


SYNCHRONOUS = {"kind": "synchronous"}


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_constant_times_on_a_ring_are_the_closed_form(workers: int) -> None:
    trace = simulate(scenario(SYNCHRONOUS, "ring", cluster={"workers": workers}))
    step = 10e-3 + collectives.ring_all_reduce_seconds(1e6, workers, 1e9, 100e-6)
    assert trace.updates.time_seconds == pytest.approx(step * np.arange(1, 21), rel=1e-9)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_constant_times_with_a_server_are_the_closed_form(workers: int) -> None:
    """An update comes when all gradients are in; what follows is the pull, compute and the next push."""
    trace = simulate(scenario(SYNCHRONOUS, cluster={"workers": workers}))
    exchange = collectives.parameter_server_seconds(1e6, workers, 1e9, 100e-6)
    first = 10e-3 + exchange / 2
    assert trace.updates.time_seconds == pytest.approx(first + (10e-3 + exchange) * np.arange(20), rel=1e-9)


def test_drawn_times_with_a_server_follow_the_recurrence() -> None:
    found = scenario(
        SYNCHRONOUS, compute={"distribution": "lognormal", "mean": "10 ms", "cv": 0.5}, cluster={"workers": 6}
    )
    times = found.compute_times()
    now, updates = 0.0, []
    for step in range(found.steps):
        ready = sorted(times(worker, step) for worker in range(6))
        waited = max(t + 100e-6 + (6 - j) * 1e-3 for j, t in enumerate(ready))
        updates.append(now + waited)
        now += waited + 6e-3 + 100e-6
    assert simulate(found).updates.time_seconds == pytest.approx(updates, rel=1e-9)


def test_the_first_workers_in_make_an_update_and_the_late_one_is_answered_at_once() -> None:
    """Worker 3 takes 2.37 times as long: its gradient of version 0 arrives after version 2 and is dropped."""
    found = scenario(
        {"kind": "backup", "backups": 1},
        compute={"mean": "10 ms", "slow": {"3": 2.37}},
        workload={"gradient": "0 B"},
        cluster={"latency": "0 s"},
    )
    trace = simulate(found)
    assert trace.updates.time_seconds == pytest.approx(10e-3 * np.arange(1, 21))
    late = trace.contributions.where(trace.contributions.worker == 3)
    assert not late.applied.any()
    assert late.read_version.tolist() == [0, 2, 4, 7, 9, 11, 14, 16]  # versions made by 23.7, 47.4, … ms
    assert trace.contributions.where(trace.contributions.worker != 3).applied.all()


def test_a_cancelled_worker_starts_the_next_step_with_the_others() -> None:
    found = scenario({"kind": "backup", "backups": 1, "cancel": True}, compute={"mean": "10 ms", "slow": {"3": 2.5}})
    trace = simulate(found)
    late = trace.contributions.where(trace.contributions.worker == 3)
    assert late.cancelled.all()
    assert late.read_version.tolist() == list(range(20))
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    starts = [compute.start_seconds[compute.worker == worker][:20] for worker in range(4)]
    assert starts[3][1:] == pytest.approx(starts[0][1:], abs=1.1e-3)  # they share the server's up-link, 1 ms each


def test_a_cancelled_push_frees_the_servers_link() -> None:
    """With a slow up-link the late gradient is on its way when the update comes; its bytes never arrive."""
    table = scenario({"kind": "backup", "backups": 1, "cancel": True}).table()
    table["cluster"]["nic"] = {"3": {"up": "1 MB/s"}}
    trace = simulate(Scenario.of(table))
    assert not (trace.transfers.source == 3).any()
    assert (
        trace.spans.label[(trace.spans.worker == 3) & (trace.spans.kind == SpanKind.SEND)].tolist()
        == ["cancelled"] * 20
    )
    assert violations(trace) == []


def test_a_fifo_server_with_rendezvous_pays_the_latency_at_each_turn() -> None:
    for sends, turn in (("rendezvous", 1e-3 + 100e-6), ("eager", 1e-3)):
        trace = simulate(scenario(SYNCHRONOUS, communication={"receive": "fifo", "sends": sends}))
        first = 10e-3 + (0 if sends == "rendezvous" else 100e-6) + 4 * turn
        assert trace.updates.time_seconds[0] == pytest.approx(first, rel=1e-9)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (SYNCHRONOUS, HARMONIC[7]),
        ({"kind": "backup", "backups": 4, "cancel": True}, HARMONIC[7] - HARMONIC[3]),
        ({"kind": "backup", "backups": 1, "cancel": True}, HARMONIC[7] - 1.0),
    ],
)
def test_order_statistics_of_exponential_times(
    policy: dict[str, Any], expected: float, whole: Callable[[int, int], int]
) -> None:
    steps = step_durations(simulate(exponential(policy, whole(1500, 40_000)))).seconds
    assert steps.mean() == pytest.approx(expected, abs=4 * steps.std() / np.sqrt(len(steps)) + 1e-6)


@pytest.mark.whole
def test_dropping_backups_has_no_order_statistic_and_is_slower(whole: Callable[[int, int], int]) -> None:
    """Late workers start the next step late (references: about 1.035 for 8 workers, 4 backups)."""
    count = whole(3000, 40_000)
    steps = step_durations(simulate(exponential({"kind": "backup", "backups": 4}, count))).seconds[count // 10 :]
    batches = steps[: len(steps) // 50 * 50].reshape(50, -1).mean(axis=1)  # steps are correlated: batch means
    assert steps.mean() == pytest.approx(1.035, abs=4 * batches.std() / np.sqrt(50))
    assert steps.mean() > HARMONIC[7] - HARMONIC[3] + 0.2


def exponential(policy: dict[str, Any], steps: int) -> Scenario:
    """Exponential compute of mean 1 s on 8 workers, communication free."""
    table = scenario(SYNCHRONOUS).table() | {
        "steps": steps,
        "policy": policy,
        "cluster": {"workers": 8, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
        "compute": {"distribution": "exponential", "mean": "1 s"},
        "workload": {"gradient": "0 B"},
    }
    return Scenario.of(table)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    workers = draw(st.integers(1, 6))
    nics = draw(st.dictionaries(st.integers(0, workers - 1), st.sampled_from(["20 MB/s", "300 MB/s"]), max_size=2))
    kind = draw(st.sampled_from(["ring", "parameter_server"]))
    policy: dict[str, Any] = SYNCHRONOUS
    communication: dict[str, Any] = {"kind": kind, "sends": draw(st.sampled_from(["rendezvous", "eager"]))}
    if kind == "parameter_server":
        communication["receive"] = draw(st.sampled_from(["concurrent", "fifo"]))
        if draw(st.booleans()):
            policy = {"kind": "backup", "backups": draw(st.integers(0, workers - 1)), "cancel": draw(st.booleans())}
    return Scenario.of(
        {
            "steps": draw(st.integers(1, 8)),
            "seed": draw(st.integers(0, 1000)),
            "cluster": {
                "workers": workers,
                "bandwidth": "200 MB/s",
                "latency": draw(st.sampled_from(["0 s", "1 ms"])),
                "nic": {str(host): {draw(st.sampled_from(["up", "down"])): speed} for host, speed in nics.items()},
            },
            "compute": {
                "distribution": "pareto",
                "mean": "20 ms",
                "alpha": 1.5,
                "slow": {"0": draw(st.floats(0.5, 4.0))},
            },
            "workload": {"gradient": draw(st.sampled_from(["0 B", "4 kB", "3 MB"]))},
            "policy": policy,
            "communication": communication,
        }
    )


@settings(max_examples=reduced(150))
@given(scenarios())
def test_every_simulated_trace_is_sound(found: Scenario) -> None:
    trace = simulate(found)
    assert violations(trace) == []
    assert len(trace.updates) == found.steps
    parts = worker_seconds(trace)
    assert sum(parts.values()) == pytest.approx(np.full(found.cluster.workers, trace.total_seconds), rel=1e-9)
    assert all((seconds >= -1e-9).all() for seconds in parts.values())
    used = found.cluster.workers - getattr(found.policy, "backups", 0)
    assert np.bincount(trace.contributions.version[trace.contributions.applied])[1:].tolist() == [used] * found.steps


@settings(max_examples=40)
@given(scenarios())
def test_the_work_done_is_the_work_drawn(found: Scenario) -> None:
    """Every finished compute span lasts what the seed says, keyed by the version it was computed on."""
    trace = simulate(found)
    times = found.compute_times()
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    keys = zip(compute.worker.tolist(), compute.step.tolist(), strict=True)
    spans = dict(zip(keys, (compute.end_seconds - compute.start_seconds).tolist(), strict=True))
    made = trace.contributions.where(~trace.contributions.cancelled)
    for worker, step, version in zip(made.worker.tolist(), made.step.tolist(), made.read_version.tolist(), strict=True):
        assert spans[worker, step] == pytest.approx(times(worker, version), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_a_bit_identical_trace(name: str) -> None:
    assert simulate(example(name)) == simulate(example(name))
    assert simulate(example(name)) != simulate(example(name).replacing({"seed": 8}))


def test_hash_randomization_changes_nothing() -> None:
    code = (
        "import distsim, hashlib; t = distsim.simulate(distsim.example('backup_server'));"
        "print(hashlib.sha256(t.spans.end_seconds.tobytes() + t.transfers.end_seconds.tobytes()).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_ties_are_broken_by_rank() -> None:
    """Equal constant times: all gradients arrive at one instant; the dropped one is the last rank's."""
    trace = simulate(
        scenario({"kind": "backup", "backups": 1}, workload={"gradient": "0 B"}, cluster={"latency": "0 s"})
    )
    first = trace.contributions.where(trace.contributions.read_version == 0)
    assert first.worker[~first.applied].tolist() == [3]


def calibration(**changes: Any) -> Calibration:
    values: dict[str, Any] = {
        "kind": "parameter_server", "workers": 4, "bandwidth_bytes_per_second": 5e8, "latency_seconds": 2e-3,
        "apply_seconds": 0.0, "points": (),
    }  # fmt: skip
    return Calibration((Exchange(**(values | changes)),))


def test_a_calibration_takes_the_place_of_the_scenarios_links() -> None:
    slow_nic = scenario(SYNCHRONOUS, cluster={"nic": {"1": {"up": "1 MB/s"}}})
    trace: Trace = simulate(slow_nic, calibration())
    as_told = simulate(scenario(SYNCHRONOUS, cluster={"bandwidth": "500 MB/s", "latency": "2 ms"}))
    assert trace.updates == as_told.updates
    assert trace.metadata["calibration"]["latency_seconds"] == 2e-3


def test_the_servers_own_work_delays_its_answers() -> None:
    without = simulate(scenario(SYNCHRONOUS), calibration()).updates.time_seconds
    with_work = simulate(scenario(SYNCHRONOUS), calibration(apply_seconds=7e-3)).updates.time_seconds
    assert with_work - without == pytest.approx(7e-3 * np.arange(1, 21), rel=1e-9)


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, "x", None, True, 10**400])
def test_a_servers_own_work_that_is_no_time_is_refused(seconds: Any) -> None:
    with pytest.raises(InputError, match=r"apply_seconds = .*: must be a number from 0 to 1e\+12"):
        simulate(scenario(SYNCHRONOUS), apply_seconds=seconds)


def test_a_servers_own_work_without_effect_is_refused() -> None:
    pipeline = scenario({"kind": "pipeline", "micro_batches": 2}, workload={"activation": "1 MB"})
    for without in (scenario(SYNCHRONOUS, "ring"), pipeline):
        with pytest.raises(InputError, match="no server makes any"):
            simulate(without, apply_seconds=1e-3)
        assert simulate(without, apply_seconds=0) == simulate(without)
    with pytest.raises(InputError, match="leave one of the two out"):
        simulate(scenario(SYNCHRONOUS), calibration(), apply_seconds=1e-3)


@pytest.mark.parametrize("policy", [SYNCHRONOUS, {"kind": "local_sgd", "period": 2}])
def test_a_servers_own_work_can_be_given(policy: dict[str, Any]) -> None:
    waits = simulate(scenario(policy), apply_seconds=np.float64(7e-3)).updates.time_seconds
    assert waits[0] - simulate(scenario(policy)).updates.time_seconds[0] == pytest.approx(7e-3, rel=1e-9)


def test_a_calibration_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="the calibration holds ring with 4"):
        simulate(scenario(SYNCHRONOUS), calibration(kind="ring"))
