"""Critical paths of runs small enough to see them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.critical_path import critical_path
from distsim.examples import example
from distsim.metrics import worker_seconds
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, TraceBuilder


def by_hand(late: float = 0.0) -> Trace:
    """Two workers and a server: worker 1 computes longest, then worker 0 after the first update."""
    builder = TraceBuilder()
    builder.span(0, SpanKind.COMPUTE, 0, 0.0, 1.0)
    builder.span(1, SpanKind.COMPUTE, 0, 0.0, 2.0)
    builder.push(0, 2, 0, 1.0, 1.0, 1.5)
    builder.push(1, 2, 0, 1.0, 2.0 + late, 3.0)
    builder.update(1, 3.0, server=2)
    builder.pull(0, 2, 0, 1.0, 1.5, 3.0, 3.5)
    builder.pull(1, 2, 0, 1.0, 3.0, 3.0, 4.0)
    builder.span(0, SpanKind.COMPUTE, 1, 3.5, 6.0)
    builder.span(1, SpanKind.COMPUTE, 1, 4.0, 4.5)
    builder.push(1, 2, 1, 1.0, 4.5, 5.0)
    builder.push(0, 2, 1, 1.0, 6.0, 7.0)
    builder.update(2, 7.0, server=2)
    scenario = example("backup_server").replacing({"cluster.workers": 2, "steps": 2, "policy.backups": 0}).table()
    return builder.build(2, 1, "simulated", scenario=scenario)


def test_the_path_follows_who_was_waited_for() -> None:
    path = critical_path(by_hand())
    kinds = [SpanKind(kind).text for kind in path.spans.kind]
    assert kinds[0] == "compute"
    assert path.spans.worker[0] == 1
    computes = path.spans.of_kind(SpanKind.COMPUTE)
    assert computes.worker.tolist() == [1, 0]
    assert computes.start_seconds.tolist() == [0.0, 3.5]
    assert path.spans.end_seconds[:-1].tolist() == path.spans.start_seconds[1:].tolist()
    assert path.gap_seconds == 0.0
    assert path.seconds_by_kind()["compute"] == 2.0 + 2.5


def test_time_that_no_span_explains_is_a_gap() -> None:
    assert critical_path(by_hand(late=0.25)).gap_seconds == pytest.approx(0.25)


def test_on_a_synchronous_ring_it_is_the_slowest_of_each_step() -> None:
    trace = simulate(example("synchronous_ring"))
    path = critical_path(trace)
    times = trace.scenario.compute_times()
    slowest = np.stack([times.first(worker, 50)[:50] for worker in range(4)]).max(axis=0)
    assert path.seconds_by_kind()["compute"] == pytest.approx(slowest.sum())
    assert path.seconds_by_kind()["all_reduce"] == pytest.approx(worker_seconds(trace)["communication"].mean())


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 99),
    st.sampled_from(["10 Gbit/s", "200 Mbit/s"]),
)
def test_the_path_is_a_chain_as_long_as_the_run(
    workers: int, backups: int, cancel: bool, seed: int, bandwidth: str
) -> None:
    changes = {
        "cluster.workers": workers, "policy.backups": min(backups, workers - 1), "policy.cancel": cancel, "seed": seed,
        "cluster.bandwidth": bandwidth, "steps": 8,
    }  # fmt: skip
    trace = simulate(example("backup_server").replacing(changes))
    path = critical_path(trace)
    durations = path.spans.end_seconds - path.spans.start_seconds
    assert durations.sum() + path.gap_seconds == pytest.approx(trace.total_seconds, rel=1e-9)
    assert path.gap_seconds == pytest.approx(0.0, abs=1e-9)
    assert path.spans.start_seconds[0] == pytest.approx(0.0, abs=1e-12)


def test_nothing_happened() -> None:
    trace = TraceBuilder().build(1, 0, "simulated", scenario=example("synchronous_ring").table())
    assert len(critical_path(trace).spans) == 0
