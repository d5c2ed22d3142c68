"""Merges the records of FlexRR workers: which worker did which piece, and the sums that travelled."""

from __future__ import annotations

from dataclasses import replace

from distsim.engine.helped_pieces import Range, by_ranges
from distsim.errors import RunError
from distsim.policies import FlexRR
from distsim.runtime.recording.merge.server import ServerMerge, rows_of
from distsim.runtime.recording.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import FOR_ANOTHER, SpanKind, Trace

Doers = dict[int, tuple[int, int]]  # by item: the worker that did it, and the version that it had read


class FlexRRMerge(ServerMerge):
    """The trace of workers that do pieces of each other's steps."""

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        super().__init__(records, scenario, zero)
        assert isinstance(scenario.policy, FlexRR)
        self.items = scenario.policy.items
        self.done_by: dict[tuple[int, int], Doers] = {}  # by (worker, step)

    def computes(self, worker: int, record: Record) -> None:
        """The pieces that a worker did, its own and others', and the sums that it received."""
        ends: dict[int, float] = {}  # of its own pieces, by step
        for whose, step, item, own_step, read_version, start, end in record.rows("pieces"):
            own = whose == worker
            label = f"item {item:.0f}" if own else f"{FOR_ANOTHER} {whose:.0f}: item {item:.0f} of step {step:.0f}"
            self.builder.span(worker, SpanKind.COMPUTE, int(own_step), start - self.zero, end - self.zero, label=label)
            self._add(int(whose), int(step), int(item), worker, int(read_version))
            if own:
                ends[int(step)] = end
        self._sums(worker, record, ends)

    def _add(self, worker: int, step: int, item: int, doer: int, read_version: int) -> None:
        doers = self.done_by.setdefault((worker, step), {})
        if item in doers:
            raise RunError(
                f"item {item} of step {step} of worker {worker} was done twice, by workers {doers[item][0]} and {doer}"
            )
        doers[item] = doer, read_version

    def _sums(self, worker: int, record: Record, ends: dict[int, float]) -> None:
        last_began: dict[int, float] = {}  # by step
        for helper, helpers in enumerate(self.workers):
            sent, received = rows_of(helpers, "sums_sent", worker), rows_of(record, "sums_received", helper)
            for (_, own_step, start), (_, step, end) in zip(sent, received, strict=True):
                begin, over = start - self.zero, max(start, end) - self.zero
                add = self.builder.span
                add(helper, SpanKind.SEND, int(own_step), begin, over, self.num_bytes, f"to worker {worker}")
                add(worker, SpanKind.RECEIVE, int(step), begin, over, self.num_bytes, f"from worker {helper}")
                self.builder.transfer(helper, worker, self.num_bytes, begin, over)
                last_began[int(step)] = max(last_began.get(int(step), start), start)
        for step, start in last_began.items():
            if start > ends[step]:
                self.builder.span(worker, SpanKind.WAIT, step, ends[step] - self.zero, start - self.zero)

    def began(self, worker: int) -> tuple[list[float], list[int]]:
        """When a worker began its steps, and the steps' numbers."""
        first: dict[int, float] = {}
        for _, step, _, _, _, start, _ in rows_of(self.workers[worker], "pieces", worker):
            first.setdefault(int(step), start)
        return list(first.values()), list(first)

    def completed(self, trace: Trace) -> Trace:
        """The trace of all rows, with a row of contributions for each range of items that one worker did."""
        contributions = trace.contributions
        for worker, step in zip(contributions.worker.tolist(), contributions.step.tolist(), strict=True):
            missing = sorted(set(range(self.items)) - self.done_by.get((worker, step), {}).keys())
            if missing:
                raise RunError(f"item {missing[0]} of step {step} of worker {worker} was done by no worker")
        done = [
            Range(*of_step, item, 1, *doer) for of_step, doers in self.done_by.items() for item, doer in doers.items()
        ]
        return replace(trace, contributions=by_ranges(contributions, done))
