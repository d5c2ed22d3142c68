"""Workers that play a step's program, a queue of computing and queues of exchanges: `engine.program` as arrays."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from distsim.arrays import Floats
from distsim.collective_times.call_site import calls_of
from distsim.engine.recurrence.all_reduce_sequence import tell_exchanges, transfers
from distsim.engine.recurrence.peers import call_site, why_not
from distsim.engine.recurrence.rows import SpanRows, drawn_seconds, finished, tell_updates
from distsim.groups import Groups
from distsim.policies import Computation, Programmed, StepProgram
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario` that has no recurrence, or None."""
    assert isinstance(scenario.policy, Programmed)
    program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
    called = dict.fromkeys(exchange.called for exchange in program.exchanges)
    alone = next(filter(None, (why_not(scenario, one) for one in called)), None)
    return alone or _shared(scenario, program)


def _shared(scenario: Scenario, program: StepProgram) -> str | None:
    """Two queues of exchanges whose transfers may share a link, in words, or None."""
    used: list[set[int]] = []
    for queue in program.queues if len(program.queues) > 1 else ():
        found: set[int] = set()
        for called in {program.exchanges[number].called for number in queue}:
            site = call_site(scenario, called)
            source, target = site.collective.schedule(site.topology).pairs
            found.update(*(links.tolist() for links in scenario.cluster.route_numbers(source, target)[:2]))
        used.append(found)
    for one, other in combinations(used, 2):
        if both := one & other:
            kind, host = scenario.cluster.link_name(min(both))[:2]
            return f"policy.kind = {scenario.policy.kind!r}, where two groups may share the {kind}-link of host {host}"
    return None


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
        tell_exchanges(rows, step, joined, ends[:, number], idle_from, piece.num_bytes, label, piece.called)
    builder = TraceBuilder()
    builder.extend("spans", **rows.columns())
    tell_updates(builder, ends.max(axis=(1, 2)), workers, 1, steps)
    sizes, called = [one.num_bytes for one in program.exchanges], [one.called for one in program.exchanges]
    return finished(builder, scenario, transfers(scenario, sizes, arrivals, called))


def _times(scenario: Scenario, program: StepProgram) -> tuple[Floats, Floats, Floats, Floats]:
    """When workers begin and end each computation, and join and leave each exchange: (steps, pieces, workers) each."""
    steps, workers = scenario.steps, scenario.cluster.workers
    drawn = drawn_seconds(scenario)
    called, sizes = [one.called for one in program.exchanges], [one.num_bytes for one in program.exchanges]
    calls = calls_of(scenario.cluster, scenario.communication, called, sizes, steps)
    begins, finishes = np.empty((2, steps, len(program.computations), workers))
    arrivals, ends = np.empty((2, steps, len(program.exchanges), workers))
    order = list(program.in_order())
    free = np.zeros(workers)  # when each worker's queue of computing is free
    through: dict[Groups | None, Floats] = {}  # by queue of exchanges, the same
    for step in range(steps):
        free = np.maximum.reduce([free, *through.values()])
        through = {one.groups: free for one in program.exchanges}
        for piece, number in order:
            if isinstance(piece, Computation):
                begin = np.maximum.reduce([free, *(ends[step, other] for other in piece.after)])
                free = begin + (piece.share * drawn[step] + piece.added_seconds)
                begins[step, number], finishes[step, number] = begin, free
            else:
                joined = through[piece.groups]
                if piece.after:
                    joined = np.maximum(joined, finishes[step, piece.after - 1])
                through[piece.groups] = calls[number].ends(joined)
                arrivals[step, number], ends[step, number] = joined, through[piece.groups]
    return begins, finishes, arrivals, ends
