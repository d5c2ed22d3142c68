"""Real runs of sharded and tensor parallel training: what they send and in which order; wrong numbers are found."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from distsim.groups import GroupExchange
from distsim.policies import Programmed
from distsim.runtime.measure import measure_all
from distsim.runtime.ranks.filled_exchange import FilledVector
from distsim.runtime.ranks.peers import WrongSumError
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace

POLICIES: dict[str, dict[str, Any]] = {
    "stage 1": {"kind": "sharded", "stage": 1},
    "stage 3": {"kind": "sharded", "stage": 3, "bucket": "400 kB"},
    "stage 3, nothing ahead": {"kind": "sharded", "stage": 3, "prefetch": 0},
    "tensor": {"kind": "tensor"},
}
MESHES: dict[str, dict[str, Any]] = {
    "mesh": {"kind": "mesh", "data": 2, "tensor": 2},
    "mesh, stage 3": {"kind": "mesh", "data": 2, "tensor": 2, "stage": 3},
}
NAMES = [*POLICIES, "eager", *MESHES]


def scenario(policy: dict[str, Any], workers: int = 3, **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": 5,
        "seed": 3,
        "cluster": {"workers": workers, "bandwidth": "10 Gbit/s", "latency": "50 us"},
        "compute": {"distribution": "lognormal", "mean": "20 ms", "cv": 0.3},
        "workload": {"gradient": "960 kB", "layers": 4, "activation": "48 kB"},
        "policy": policy,
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


@pytest.fixture(scope="module")
def measured() -> dict[str, Trace]:
    """The real runs, and one with eager sends."""
    found = [scenario(policy) for policy in POLICIES.values()]
    found.append(found[1].replacing({"communication.sends": "eager"}))
    on_meshes = [scenario(policy, workers=4) for policy in MESHES.values()]
    return dict(zip(NAMES, [*measure_all(found), *measure_all(on_meshes)], strict=True))


@pytest.mark.real
@pytest.mark.parametrize("name", NAMES)
def test_a_real_run_sends_what_the_simulation_says(measured: dict[str, Trace], name: str) -> None:
    ours, predicted = measured[name], simulate(measured[name].scenario)
    assert carried(ours) == carried(predicted)
    for worker in range(ours.workers):
        assert exchanges(ours, worker) == exchanges(predicted, worker)
    for kind in (SpanKind.FORWARD, SpanKind.BACKWARD):
        assert len(ours.spans.of_kind(kind)) == len(predicted.spans.of_kind(kind))


@pytest.mark.real
@pytest.mark.parametrize("name", NAMES)
def test_neither_queue_begins_before_what_it_waits_for(measured: dict[str, Trace], name: str) -> None:
    """By the clock of one process: a computation after its exchanges, an exchange after its computations."""
    trace = measured[name]
    policy = trace.scenario.policy
    assert isinstance(policy, Programmed)
    program = policy.program(trace.scenario.workload, trace.workers)
    computed = [number for number, piece in enumerate(program.computations) if piece.kind != "apply"]
    for worker, step in product(range(trace.workers), range(5)):
        own = trace.spans.where((trace.spans.worker == worker) & (trace.spans.step == step))
        own = own.where(np.argsort(own.start_seconds, kind="stable"))
        computing = own.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
        exchanging = own.of_kind(SpanKind.ALL_REDUCE, SpanKind.REDUCE_SCATTER, SpanKind.ALL_GATHER)
        assert (len(computing), len(exchanging)) == (len(computed), len(program.exchanges))
        begins, ends = np.empty((2, len(program.exchanges)))
        for queue in program.queues:  # no two queues exchange as many bytes
            sizes = [program.exchanges[number].num_bytes for number in queue]
            rows = exchanging.where(np.isin(exchanging.bytes, sizes))
            assert rows.bytes.tolist() == sizes
            begins[list(queue)], ends[list(queue)] = rows.start_seconds, rows.end_seconds
        for place, number in enumerate(computed):
            for after in program.computations[number].after:
                assert computing.start_seconds[place] >= ends[after]
        for number, exchange in enumerate(program.exchanges):
            before = [place for place, computation in enumerate(computed) if computation < exchange.after]
            if before:
                assert begins[number] >= computing.end_seconds[before[-1]]


def carried(trace: Trace) -> list[tuple[Any, ...]]:
    """Call, source, target, chunk and bytes of each transfer."""
    of = trace.transfers
    columns = (of.collective, of.source, of.target, of.chunk, of.bytes)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def exchanges(trace: Trace, worker: int) -> list[tuple[str, str]]:
    """The exchanges of a worker in the order of each queue; no two queues exchange as many bytes."""
    own = trace.spans.of_kind(SpanKind.ALL_REDUCE, SpanKind.REDUCE_SCATTER, SpanKind.ALL_GATHER)
    own = own.where(own.worker == worker).sorted()
    if trace.scenario.policy.kind == "mesh":
        own = own.where(np.argsort(own.bytes, kind="stable"))
    return [(SpanKind(kind).text, label) for kind, label in zip(own.kind.tolist(), own.label.tolist(), strict=True)]


def vector(kind: Any) -> FilledVector:
    """An exchange of the only worker, whose numbers no other changes."""
    alone = scenario({"kind": "sharded", "stage": 1}).replacing({"cluster.workers": 1})
    return FilledVector(alone, 0, GroupExchange(kind), 400.0, "unit 0")


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_a_wrong_number_is_found(kind: str) -> None:
    """Also those of the step before, which a lost exchange would leave."""
    found = vector(kind)
    found.make(3)
    found.check(3)
    with pytest.raises(WrongSumError, match=f"of 100 numbers of the last {kind} of unit 0 are wrong at worker 0"):
        found.check(4)
    found.numbers[7] += 1.0
    with pytest.raises(WrongSumError, match="1 of 100 numbers"):
        found.check(3)
