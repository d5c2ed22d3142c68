"""Distributed data parallel: the recurrence over buckets, by hand; overlap; and the invariants of every trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.metrics import worker_seconds
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, violations

LAYER, RATE, LATENCY = 2e6, 1e9, 100e-6


def scenario(workers: int = 4, steps: int = 6, policy: dict[str, Any] | None = None, **tables: Any) -> Scenario:
    """Eight layers of 2 MB in buckets of [7], [6, 5, 4], [3, 2, 1] and [0]."""
    table: dict[str, Any] = {
        "steps": steps,
        "seed": 3,
        "cluster": {"workers": workers, "bandwidth": "1 GB/s", "latency": "100 us"},
        "compute": {"distribution": "constant", "mean": "24 ms"},
        "workload": {"gradient": "16 MB", "layers": 8},
        "policy": {"kind": "ddp", "bucket": "6 MB", "first_bucket": "2 MB"} | (policy or {}),
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


BUCKETS = ((7,), (6, 5, 4), (3, 2, 1), (0,))


def ring_seconds(num_bytes: float, workers: int, rate: float = RATE) -> float:
    return 2 * (workers - 1) * (LATENCY + num_bytes / workers / rate)


def by_hand(found: Scenario, compression: float = 1.0, accumulate: int = 1, share: float = 2 / 3) -> list[float]:
    """On equal links all ranks leave an all-reduce at once; it begins when all are ready and the one before is over."""
    workers = found.cluster.workers
    times = found.compute_times()
    begins, updates = np.zeros(workers), []
    for step in range(found.steps):
        seconds = np.array([times(worker, step) for worker in range(workers)])
        if (step + 1) % accumulate:
            begins = begins + seconds
            continue
        through = 0.0
        for bucket in BUCKETS:
            ready = begins + seconds * (1 - share + share * (8 - bucket[-1]) / 8)
            through = max(ready.max(), through) + ring_seconds(len(bucket) * LAYER * compression, workers)
        begins = np.full(workers, through)
        updates.append(through)
    return updates


def test_one_step_by_hand() -> None:
    """2 ms of backward for each layer after 8 ms of forward; buckets take 2.2, 6.2, 6.2 and 2.2 ms on two workers.

    Ready at 10, 16, 22, 24; so through at 10 + 2.2, 16 + 6.2, 22.2 + 6.2, 28.4 + 2.2 ms.
    """
    trace = simulate(scenario(workers=2, steps=1))
    assert trace.total_seconds == pytest.approx(30.6e-3, rel=1e-9)
    sums = trace.spans.of_kind(SpanKind.ALL_REDUCE)
    own = sums.where(sums.worker == 1)
    assert own.label.tolist() == ["bucket 0", "bucket 1", "bucket 2", "bucket 3"]
    assert own.start_seconds == pytest.approx(np.array([10, 16, 22.2, 28.4]) * 1e-3, rel=1e-9)
    assert own.end_seconds == pytest.approx(np.array([12.2, 22.2, 28.4, 30.6]) * 1e-3, rel=1e-9)
    assert own.bytes.tolist() == [2e6, 6e6, 6e6, 2e6]


def test_communication_that_compute_hides_is_not_exposed() -> None:
    """Of the 16.8 ms on the wire in that step 10.2 lie within backward, which ends at 24 ms."""
    parts = worker_seconds(simulate(scenario(workers=2, steps=1)))
    assert parts["compute"] == pytest.approx([24e-3] * 2, rel=1e-9)
    assert parts["communication"] == pytest.approx([6.6e-3] * 2, rel=1e-9)
    assert parts["waiting"] == pytest.approx([0.0] * 2, abs=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("mean", ["24 ms", "240 ms"])
def test_drawn_times_follow_the_recurrence(workers: int, mean: str) -> None:
    found = scenario(workers, compute={"distribution": "lognormal", "mean": mean, "cv": 0.5})
    assert simulate(found).updates.time_seconds == pytest.approx(by_hand(found), rel=1e-9)


def test_compression_scales_the_bytes_and_nothing_else() -> None:
    found = scenario(policy={"compression": 0.25})
    trace = simulate(found)
    assert trace.updates.time_seconds == pytest.approx(by_hand(found, compression=0.25), rel=1e-9)
    assert trace.transfers.bytes.sum() == pytest.approx(0.25 * 6 * 2 * 3 * 16e6)


def test_backward_share_moves_the_moment_of_the_first_bucket() -> None:
    found = scenario(workload={"gradient": "16 MB", "layers": 8, "backward_share": 0.5})
    assert simulate(found).updates.time_seconds == pytest.approx(by_hand(found, share=0.5), rel=1e-9)


def test_accumulating_steps_do_not_communicate() -> None:
    compute = {"distribution": "exponential", "mean": "24 ms"}
    found = scenario(steps=8, policy={"accumulate": 3}, compute=compute)
    trace = simulate(found)
    assert trace.updates.time_seconds == pytest.approx(by_hand(found, accumulate=3), rel=1e-9)
    assert len(trace.transfers) == 2 * len(BUCKETS) * 6 * 4
    own = trace.contributions.where(trace.contributions.worker == 2)
    assert own.step.tolist() == [0, 1, 2, 3, 4, 5]  # steps 6 and 7 are computed and sent nowhere
    assert own.version.tolist() == [1, 1, 1, 2, 2, 2]
    assert own.read_version.tolist() == [0, 0, 0, 1, 1, 1]
    assert len(trace.spans.of_kind(SpanKind.FORWARD)) == 4 * 8


def test_a_fast_worker_waits_only_when_its_backward_is_over() -> None:
    """Worker 0 is done at 24 ms; worker 1, twice as slow, brings its buckets at 20, 32, 44 and 48 ms.

    So they are through at 22.2, 38.2, 50.2 and 52.4 ms, and worker 0 waits for the two in the middle.
    """
    trace = simulate(scenario(workers=2, steps=1, compute={"mean": "24 ms", "slow": {"1": 2.0}}))
    waits = trace.spans.of_kind(SpanKind.WAIT)
    assert waits.worker.tolist() == [0, 0]
    assert waits.label.tolist() == ["bucket 1", "bucket 2"]
    assert waits.start_seconds == pytest.approx([24e-3, 38.2e-3], rel=1e-9)
    assert waits.end_seconds == pytest.approx([32e-3, 44e-3], rel=1e-9)
    assert trace.total_seconds == pytest.approx(52.4e-3, rel=1e-9)
    assert worker_seconds(trace)["waiting"] == pytest.approx([13.8e-3, 0.0], abs=1e-12)


def overlapped(trace: Trace) -> bool:
    sums, backward = trace.spans.of_kind(SpanKind.ALL_REDUCE), trace.spans.of_kind(SpanKind.BACKWARD)
    return bool(sums.start_seconds.min() < backward.end_seconds.min())


def test_one_bucket_for_all_cannot_overlap() -> None:
    whole = simulate(scenario(policy={"bucket": "100 MB", "first_bucket": "100 MB"}))
    assert not overlapped(whole)
    assert overlapped(simulate(scenario()))
    assert whole.updates.time_seconds == pytest.approx((24e-3 + ring_seconds(16e6, 4)) * np.arange(1, 7), rel=1e-9)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    workers = draw(st.integers(1, 5))
    nics = draw(st.dictionaries(st.integers(0, workers - 1), st.sampled_from(["50 MB/s", "300 MB/s"]), max_size=2))
    accumulate = draw(st.integers(1, 3))
    return scenario(
        steps=draw(st.integers(accumulate, 5)),
        policy={
            "bucket": draw(st.sampled_from(["1 kB", "3 MB", "25 MiB"])),
            "first_bucket": draw(st.sampled_from(["1 kB", "1 MiB", "9 MB"])),
            "accumulate": accumulate,
            "compression": draw(st.sampled_from([1.0, 0.5])),
        },
        cluster={
            "workers": workers,
            "bandwidth": "200 MB/s",
            "latency": draw(st.sampled_from(["0 s", "1 ms"])),
            "nic": {str(host): {draw(st.sampled_from(["up", "down"])): speed} for host, speed in nics.items()},
        },
        compute={"distribution": "pareto", "mean": "20 ms", "alpha": 1.5, "slow": {"0": draw(st.floats(0.5, 4.0))}},
        workload={"gradient": draw(st.sampled_from(["0 B", "4 kB", "3 MB"])), "layers": draw(st.integers(1, 6))},
        communication={
            "kind": draw(st.sampled_from(["ring", "tree"])),
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
    assert len(trace.updates) == found.steps // policy.accumulate
    assert len(trace.contributions) == workers * (found.steps // policy.accumulate) * policy.accumulate
    parts = worker_seconds(trace)
    assert sum(parts.values()) == pytest.approx(np.full(workers, trace.total_seconds), rel=1e-9)
    expected = len(trace.updates) * found.gradient_bytes * policy.compression * 2 * (workers - 1)
    assert trace.transfers.bytes.sum() == pytest.approx(expected)
    forward = trace.spans.of_kind(SpanKind.FORWARD)
    keys = zip(forward.worker.tolist(), forward.step.tolist(), strict=True)
    ready = dict(zip(keys, forward.end_seconds.tolist(), strict=True))
    sums = trace.spans.of_kind(SpanKind.ALL_REDUCE)
    for worker, step, start in zip(sums.worker.tolist(), sums.step.tolist(), sums.start_seconds.tolist(), strict=True):
        assert start >= ready[worker, step]
