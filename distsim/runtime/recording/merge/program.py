"""Merges the records of workers that play a step's program, in the words of `engine.program`."""

from __future__ import annotations

from distsim.policies import Programmed
from distsim.runtime.recording.merge.peers import all_reduces, tell_all_reduce, tell_transfers
from distsim.runtime.recording.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import SpanKind, TraceBuilder
from distsim.workload import FLOAT_BYTES


class ProgramMerge:
    """The trace of workers with a queue of computing and queues of exchanges."""

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        assert isinstance(scenario.policy, Programmed)
        self.builder = TraceBuilder()
        program = scenario.policy.program(scenario.workload, scenario.cluster.workers)
        computed: dict[tuple[int, int, int], float] = {}  # by worker, step and computation: when it ended
        for worker, record in enumerate(records):
            for step, number, start, end in record.rows("computations"):
                part = program.computations[int(number)]
                computed[worker, int(step), int(number)] = end - zero
                if part.kind != "apply" or scenario.workload.computes:
                    kind, label = SpanKind[part.kind.upper()], program.label(part)
                    self.builder.span(worker, kind, int(step), start - zero, end - zero, label=label)
        floats = [int(count) for count in records[0].facts["floats"]]
        over: dict[int, float] = {}  # by step: when its last exchange was over
        for call, arrivals, ends in all_reduces(records, zero, [one.called for one in program.exchanges]):
            step, number = divmod(call, len(program.exchanges))
            piece, before = program.exchanges[number], program.computed_before_waiting[number]
            # A worker does not wait while it has something to compute.
            idle_from = [max(joined, computed[worker, step, before - 1]) for worker, joined in enumerate(arrivals)]
            label = program.label(piece)
            num_bytes = float(FLOAT_BYTES * floats[number])
            tell_all_reduce(self.builder, step, num_bytes, arrivals, ends, idle_from, label, piece.called)
            over[step] = max(over.get(step, 0.0), *ends)
        for step, seconds in sorted(over.items()):
            for worker in range(len(records)):
                self.builder.applied(step + 1, worker, step, read_version=step)
            self.builder.update(step + 1, seconds)
        shapes, kinds = [(count, FLOAT_BYTES) for count in floats], [one.called for one in program.exchanges]
        tell_transfers(self.builder, records, scenario, shapes, zero, kinds)
