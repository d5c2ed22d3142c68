"""Workers that play a step's program, a queue of computing and one of exchanges: `engine.program` as arrays."""

from __future__ import annotations

import numpy as np

from distsim.arrays import Floats
from distsim.collective_times.call_site import calls_of
from distsim.engine.recurrence.all_reduce_sequence import tell_exchanges, transfers
from distsim.engine.recurrence.peers import why_not
from distsim.engine.recurrence.rows import SpanRows, drawn_seconds, finished, tell_updates
from distsim.policies import Computation, Programmed, StepProgram
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario` that has no recurrence, or None."""
    assert isinstance(scenario.policy, Programmed)
    program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
    kinds = dict.fromkeys(exchange.kind for exchange in program.exchanges)
    return next(filter(None, (why_not(scenario, kind) for kind in kinds)), None)


def run(scenario: Scenario) -> Trace:
    """Simulates `scenario`."""
    policy, steps, workers = scenario.policy, scenario.steps, scenario.cluster.workers
    assert isinstance(policy, Programmed)
    program = policy.program(scenario.workload, workers)
    computed, finishes, arrivals, ends = _times(scenario, program)
    rows, worker, step = SpanRows(), np.arange(workers), np.arange(steps)[:, None]
    for number, part in enumerate(program.computations):
        if part.kind != "apply" or part.added_seconds:
            label = 0, [program.label(part)]
            rows.add(SpanKind[part.kind.upper()], worker, step, computed[:, number], finishes[:, number], label=label)
    for number, (piece, before) in enumerate(zip(program.exchanges, program.computed_before_waiting, strict=True)):
        joined = arrivals[:, number]
        # A worker does not wait while it has something to compute.
        idle_from = np.maximum(joined, finishes[:, before - 1]) if before else joined
        label = 0, [program.label(piece)]
        kind = SpanKind[piece.kind.upper()]
        tell_exchanges(rows, kind, step, joined, ends[:, number], idle_from, piece.num_bytes, label)
    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    tell_updates(builder, ends[:, -1].max(axis=1), workers, 1, steps)
    sizes, kinds = [one.num_bytes for one in program.exchanges], [one.kind for one in program.exchanges]
    return finished(builder, scenario, transfers(scenario, sizes, arrivals, kinds))


def _times(scenario: Scenario, program: StepProgram) -> tuple[Floats, Floats, Floats, Floats]:
    """When workers begin and end each computation, and join and leave each exchange: (steps, pieces, workers) each."""
    steps, workers = scenario.steps, scenario.cluster.workers
    drawn = drawn_seconds(scenario)
    kinds, sizes = [one.kind for one in program.exchanges], [one.num_bytes for one in program.exchanges]
    calls = calls_of(scenario.cluster, scenario.communication, kinds, sizes, steps)
    begins, finishes = np.empty((2, steps, len(program.computations), workers))
    arrivals, ends = np.empty((2, steps, len(program.exchanges), workers))
    order = list(program.in_order())
    free = through = np.zeros(workers)  # when each worker's queue of computing, and of exchanges, is free
    for step in range(steps):
        free = through = np.maximum(free, through)
        computed = exchanged = 0
        for piece in order:
            if isinstance(piece, Computation):
                begin = np.maximum(free, ends[step, piece.after - 1]) if piece.after else free
                free = begin + (piece.share * drawn[step] + piece.added_seconds)
                begins[step, computed], finishes[step, computed] = begin, free
                computed += 1
            else:
                joined = np.maximum(through, finishes[step, piece.after - 1]) if piece.after else through
                through = calls[exchanged].ends(joined)
                arrivals[step, exchanged], ends[step, exchanged] = joined, through
                exchanged += 1
    return begins, finishes, arrivals, ends
