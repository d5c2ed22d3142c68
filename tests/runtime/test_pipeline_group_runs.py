"""Real runs of pipelines whose stages have several workers: what they send, in which order, and when a step ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from distsim.policies import Pipeline
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, violations

STEPS = 4
OF_FOUR: dict[str, dict[str, Any]] = {
    "data": {"data": 2},
    "data, divided state, 1f1b": {"data": 2, "stage": 1, "schedule": "1f1b"},
    "tensor": {"tensor": 2},
    "tensor, 1f1b": {"tensor": 2, "schedule": "1f1b"},
    "four stages": {},
    "one stage": {"data": 2, "tensor": 2},
}
OF_EIGHT: dict[str, dict[str, Any]] = {"data and tensor": {"data": 2, "tensor": 2, "stage": 1}}
NAMES = [*OF_FOUR, *OF_EIGHT]
EXCHANGES = (SpanKind.ALL_REDUCE, SpanKind.REDUCE_SCATTER, SpanKind.ALL_GATHER)

pytestmark = pytest.mark.real


def scenario(policy: dict[str, Any], workers: int = 4) -> Scenario:
    """Stages of two or of three layers. Workers divide all sizes evenly: a simulation also cuts a number in parts."""
    return Scenario.of(
        {
            "steps": STEPS,
            "seed": 5,
            "cluster": {"workers": workers, "bandwidth": "10 Gbit/s", "latency": "50 us"},
            "compute": {"distribution": "lognormal", "mean": "40 ms", "cv": 0.3},
            "workload": {"gradient": "100 kB", "layers": 4 if policy.get("tensor") else 5, "activation": "12 kB"},
            "policy": {"kind": "pipeline", "micro_batches": 4, **policy},
            "communication": {"kind": "ring"},
        }
    )


@pytest.fixture(scope="module")
def measured() -> dict[str, Trace]:
    four = measure_all([scenario(policy) for policy in OF_FOUR.values()])
    eight = measure_all([scenario(policy, workers=8) for policy in OF_EIGHT.values()])
    return dict(zip(NAMES, [*four, *eight], strict=True))


def carried(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Call, source, target, chunk and bytes of each transfer."""
    of = trace.transfers
    columns = (of.collective, of.source, of.target, of.chunk, of.bytes)
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


def computed_and_exchanged(trace: Trace, worker: int) -> list[tuple[str, int, str]]:
    """Kind, step and label of a worker's pieces and exchanges, in order."""
    own = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD, *EXCHANGES)
    own = own.where(own.worker == worker)
    own = own.where(np.lexsort((own.end_seconds, own.start_seconds)))
    columns = zip(own.kind.tolist(), own.step.tolist(), own.label.tolist(), strict=True)
    return [(SpanKind(kind).text, step, label) for kind, step, label in columns]


@pytest.mark.parametrize("name", NAMES)
def test_a_real_run_sends_what_the_simulation_says(measured: dict[str, Trace], name: str) -> None:
    assert carried(measured[name]) == carried(simulate(measured[name].scenario))


@pytest.mark.parametrize("name", NAMES)
def test_each_worker_does_its_pieces_and_exchanges_in_the_simulated_order(
    measured: dict[str, Trace], name: str
) -> None:
    ours, predicted = measured[name], simulate(measured[name].scenario)
    for worker in range(ours.workers):
        assert computed_and_exchanged(ours, worker) == computed_and_exchanged(predicted, worker)


@pytest.mark.parametrize("name", NAMES)
def test_the_trace_breaks_no_rule_and_no_step_begins_before_the_update(measured: dict[str, Trace], name: str) -> None:
    trace = measured[name]
    assert not violations(trace)
    updates = np.sort(trace.updates.time_seconds)
    assert len(updates) == STEPS
    pieces = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    for step in range(1, STEPS):
        assert pieces.where(pieces.step == step).start_seconds.min() >= updates[step - 1]


@pytest.mark.parametrize("name", NAMES)
def test_an_exchange_of_gradients_begins_after_all_pieces_of_its_workers(measured: dict[str, Trace], name: str) -> None:
    trace = measured[name]
    policy = trace.scenario.policy
    assert isinstance(policy, Pipeline)
    own = trace.spans.of_kind(*EXCHANGES)
    gradients = own.where(own.label == "gradients")
    assert len(gradients) == (STEPS * trace.workers * (1 + policy.stage) if policy.data > 1 else 0)
    pieces = trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
    rows = zip(gradients.worker.tolist(), gradients.step.tolist(), gradients.start_seconds.tolist(), strict=True)
    for worker, step, start in rows:
        assert start >= pieces.where((pieces.worker == worker) & (pieces.step == step)).end_seconds.max()
