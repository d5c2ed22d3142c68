"""Local SGD: local steps by hand, averages by closed form, and the invariants of every trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.engine import selection
from distsim.metrics import worker_seconds
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, violations

BYTES, RATE, LATENCY = 1e6, 1e9, 100e-6


def scenario(period: int, steps: int = 10, workers: int = 4, kind: str = "ring", **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": steps,
        "seed": 3,
        "cluster": {"workers": workers, "bandwidth": "1 GB/s", "latency": "100 us"},
        "compute": {"distribution": "constant", "mean": "10 ms"},
        "workload": {"gradient": "1 MB"},
        "policy": {"kind": "local_sgd", "period": period},
        "communication": {"kind": kind},
    }
    return Scenario.of(table | tables)


def exchange_seconds(kind: str, workers: int) -> float:
    """Equal links, everybody ready: a ring's 2 (N - 1) turns; or one server's N gradients in, then N out."""
    if kind == "ring":
        return 2 * (workers - 1) * (LATENCY + BYTES / workers / RATE)
    return 2 * (LATENCY + workers * BYTES / RATE)


@pytest.mark.parametrize("kind", ["ring", "parameter_server"])
@pytest.mark.parametrize("period", [1, 3, 10, 99])
def test_constant_times_are_the_closed_form(period: int, kind: str) -> None:
    trace = simulate(scenario(period, steps=10, kind=kind))
    local_steps = np.minimum(period * np.arange(1, -(-10 // period) + 1), 10)  # before each average, from the start
    expected = local_steps * 10e-3 + exchange_seconds(kind, 4) * np.arange(1, len(local_steps) + 1)
    assert trace.updates.time_seconds == pytest.approx(expected, rel=1e-9)
    assert violations(trace) == []


@pytest.mark.parametrize("kind", ["ring", "parameter_server"])
def test_drawn_times_follow_the_sum_of_the_local_steps(kind: str) -> None:
    """A round lasts as long as the slowest sum of local draws, by (worker, step), and then one exchange."""
    found = scenario(3, steps=11, compute={"distribution": "lognormal", "mean": "10 ms", "cv": 0.5}, kind=kind)
    times = found.compute_times()
    now, averages = 0.0, []
    for steps in (range(3), range(3, 6), range(6, 9), range(9, 11)):
        ready = sorted(sum(times(worker, step) for step in steps) for worker in range(4))
        if kind == "ring":
            now += ready[-1] + exchange_seconds(kind, 4)
            averages.append(now)
        else:  # the server's down-link serves those that are there; all leave it when the last has sent
            pushed = max(seconds + LATENCY + (4 - place) * BYTES / RATE for place, seconds in enumerate(ready))
            now += pushed + LATENCY + 4 * BYTES / RATE
            averages.append(now)
    assert simulate(found).updates.time_seconds == pytest.approx(averages, rel=1e-9)


def test_period_one_is_synchronous() -> None:
    every = scenario(1, compute={"distribution": "exponential", "mean": "10 ms"})
    synchronous = Scenario.of(every.table() | {"policy": {"kind": "synchronous"}})
    first, second = simulate(every, engine="story"), simulate(synchronous, engine="story")
    for name in ("spans", "updates", "contributions", "transfers"):
        assert getattr(first, name) == getattr(second, name)


def test_each_local_step_is_a_contribution_that_a_replay_can_redo() -> None:
    rows = simulate(scenario(2, steps=5, workers=2)).contributions
    own = rows.where(rows.worker == 1)
    assert own.step.tolist() == [0, 1, 2, 3, 4]
    assert own.version.tolist() == [1, 1, 2, 2, 3]
    assert own.read_version.tolist() == [0, 0, 1, 1, 2]
    assert rows.applied.all()
    assert not rows.staleness.any()


def test_between_averages_nothing_is_sent_and_nobody_waits() -> None:
    """The fast workers are ready after 50 ms, the slow one after 150 ms; till then the ring cannot come round."""
    trace = simulate(scenario(5, compute={"mean": "10 ms", "slow": {"1": 3.0}}))
    starts, ends = trace.transfers.start_seconds, trace.updates.time_seconds
    assert ends == pytest.approx((150e-3 + exchange_seconds("ring", 4)) * np.arange(1, 3), rel=1e-9)
    silent = ((0.0, 50e-3), (ends[0], ends[0] + 50e-3))
    assert not any(((starts > begin + 1e-9) & (starts < end - 1e-9)).any() for begin, end in silent)
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    fast = compute.where(compute.worker == 0)
    gaps = fast.start_seconds[1:] - fast.end_seconds[:-1]
    assert np.flatnonzero(gaps > 1e-12).tolist() == [4]
    assert worker_seconds(trace)["waiting"] == pytest.approx([200e-3, 0.0, 200e-3, 200e-3], abs=1e-9)


def test_one_server_moves_the_bytes_of_a_push_and_a_pull() -> None:
    trace = simulate(scenario(4, steps=4, kind="parameter_server"))
    server = trace.spans.where(trace.spans.worker == 4)
    assert sorted(server.kind.tolist()) == [SpanKind.SEND] * 4 + [SpanKind.RECEIVE] * 4
    assert trace.transfers.bytes.sum() == pytest.approx(8 * BYTES)


@pytest.mark.whole
def test_longer_periods_average_the_stragglers_away(whole: Callable[[int, int], int]) -> None:
    """Wang and Joshi's effect: the maximum of 16 means of `period` exponential times; digits from simulation."""
    steps = whole(2000, 20_000)
    for period, expected in ((1, 3.381), (10, 1.632), (50, 1.265)):
        free = scenario(
            period,
            steps,
            workers=16,
            cluster={"workers": 16, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
            compute={"distribution": "exponential", "mean": "1 s"},
            workload={"gradient": "0 B"},
            kind="tree",
        )
        rounds = np.diff(simulate(free).updates.time_seconds, prepend=0.0) / period
        error = rounds.std() / np.sqrt(len(rounds))
        assert rounds.mean() == pytest.approx(expected, abs=4 * error + 1e-3)


@pytest.mark.parametrize("engine", ["story", "recurrence"])
@pytest.mark.parametrize(("sends", "latencies"), [("rendezvous", 4), ("eager", 1)])
def test_a_fifo_server_takes_models_one_after_the_other(engine: Any, sends: str, latencies: int) -> None:
    """By hand: all four are ready after 20 ms; rendezvous pays the latency at each turn, eager once; then all pull."""
    found = scenario(2, steps=4, communication={"kind": "parameter_server", "receive": "fifo", "sends": sends})
    trace = simulate(found, engine=engine)
    average = 20e-3 + latencies * LATENCY + 4 * BYTES / RATE + exchange_seconds("parameter_server", 4) / 2
    assert trace.updates.time_seconds == pytest.approx(average * np.arange(1, 3), rel=1e-9)
    received = trace.spans.where((trace.spans.worker == 4) & (trace.spans.kind == SpanKind.RECEIVE))
    assert received.label[:4].tolist() == [f"from worker {worker}" for worker in range(4)]
    assert received.start_seconds[1:4] == pytest.approx(received.end_seconds[:3], rel=1e-9)
    assert violations(trace) == []


@pytest.mark.parametrize("engine", ["story", "recurrence"])
@pytest.mark.parametrize("receive", ["fifo", "concurrent"])
def test_the_servers_own_work_delays_each_average(engine: Any, receive: str) -> None:
    """It stands in a span of its own, between the last model that comes in and the averages that leave."""
    found = scenario(2, steps=6, communication={"kind": "parameter_server", "receive": receive})
    free = simulate(found, engine=engine).updates.time_seconds
    trace = selection.run(engine, found, apply_seconds=5e-3)
    assert trace.updates.time_seconds == pytest.approx(free + 5e-3 * np.arange(1, 4), rel=1e-9)
    server = trace.spans.where(trace.spans.worker == 4)
    applied, received, sent = (server.of_kind(kind) for kind in (SpanKind.APPLY, SpanKind.RECEIVE, SpanKind.SEND))
    assert applied.step.tolist() == [0, 1, 2]
    assert applied.end_seconds - applied.start_seconds == pytest.approx(5e-3, rel=1e-9)
    assert applied.start_seconds == pytest.approx(received.end_seconds.reshape(3, 4).max(axis=1), rel=1e-9)
    assert applied.end_seconds == pytest.approx(sent.start_seconds.reshape(3, 4)[:, 0], rel=1e-9)
    assert violations(trace) == []


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    workers = draw(st.integers(1, 6))
    nics = draw(st.dictionaries(st.integers(0, workers - 1), st.sampled_from(["20 MB/s", "300 MB/s"]), max_size=2))
    return scenario(
        period=draw(st.integers(1, 5)),
        steps=draw(st.integers(1, 8)),
        cluster={
            "workers": workers,
            "bandwidth": "200 MB/s",
            "latency": draw(st.sampled_from(["0 s", "1 ms"])),
            "nic": {str(host): {draw(st.sampled_from(["up", "down"])): speed} for host, speed in nics.items()},
        },
        compute={"distribution": "pareto", "mean": "20 ms", "alpha": 1.5, "slow": {"0": draw(st.floats(0.5, 4.0))}},
        workload={"gradient": draw(st.sampled_from(["0 B", "4 kB", "3 MB"]))},
        communication={
            "kind": draw(st.sampled_from(["ring", "tree", "parameter_server"])),
            "sends": draw(st.sampled_from(["rendezvous", "eager"])),
        },
    )


@settings(max_examples=60)
@given(scenarios())
def test_every_trace_is_sound(found: Scenario) -> None:
    trace = simulate(found)
    policy: Any = found.policy
    workers = found.cluster.workers
    assert violations(trace) == []
    assert len(trace.updates) == policy.updates(found.steps, workers)
    assert len(trace.contributions) == found.steps * workers
    parts = worker_seconds(trace)
    assert sum(parts.values()) == pytest.approx(np.full(workers, trace.total_seconds), rel=1e-9)
    drawn = [found.compute_times().first(worker, found.steps)[: found.steps].sum() for worker in range(workers)]
    assert parts["compute"] == pytest.approx(drawn, rel=1e-9)
