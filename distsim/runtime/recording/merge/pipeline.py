"""Merges the records of a pipeline's workers, in the words of `engine.pipeline`.

A message travels from the moment at which its source has it and its target waits for it, until the target begins the
forward or backward that needs it.
"""

from __future__ import annotations

import numpy as np

from distsim.errors import RunError
from distsim.pipeline_stages import stages_of
from distsim.policies import Pipeline
from distsim.runtime.recording.merge.peers import tell_all_reduce, tell_transfers
from distsim.runtime.recording.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import SpanKind, TraceBuilder
from distsim.workload import FLOAT_BYTES


class PipelineMerge:
    """The trace of stages that pass micro-batches forth and gradients back."""

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        assert isinstance(scenario.policy, Pipeline)
        self.records, self.zero, self.width = records, zero, scenario.policy.width
        self.builder = TraceBuilder()
        self.num_bytes = float(records[0].facts["num_bytes"])
        self.calls = stages_of(scenario.policy, scenario.workload, len(records)).calls
        self.floats = [int(count) for count in records[0].facts["floats"]]
        self.ends = np.zeros((len(records), scenario.steps))  # when each worker was through with each step
        for worker in range(len(records)):
            self._pieces(worker)
        self._exchanges()
        self.flushes = self.ends.max(axis=0).tolist()
        for worker in range(len(records)):
            self._messages(worker)
            for step, flush in enumerate(self.flushes):
                end = float(self.ends[worker, step])
                self.builder.applied(step + 1, worker, step, read_version=step)
                if flush > end:
                    self.builder.span(worker, SpanKind.WAIT, step, end, flush)
        for step, flush in enumerate(self.flushes):
            self.builder.update(step + 1, flush)
        shapes, exchanges = [(count, FLOAT_BYTES) for count in self.floats], [call.exchange for call in self.calls]
        tell_transfers(self.builder, records, scenario, shapes, zero, exchanges)

    def _through(self, worker: int, step: int, end: float) -> None:
        self.ends[worker, step] = max(self.ends[worker, step], end)

    def _pieces(self, worker: int) -> None:
        """Adds the spans of a worker's compute."""
        for step, micro, backward, start, end in self.records[worker].rows("passes"):
            kind = SpanKind.BACKWARD if backward else SpanKind.FORWARD
            label = f"micro-batch {int(micro)}"
            self.builder.span(worker, kind, int(step), start - self.zero, end - self.zero, label=label)
            self._through(worker, int(step), end - self.zero)

    def _exchanges(self) -> None:
        """Adds the spans of the sums among workers that share blocks, and of the exchanges of gradients."""
        rows = {
            (int(call), worker): (arrival - self.zero, end - self.zero)
            for worker, record in enumerate(self.records)
            for call, arrival, end in record.rows("all_reduces")
        }
        for call in sorted({call for call, _ in rows}):
            step, number = divmod(call, len(self.calls))
            one = self.calls[number]
            both = np.array([rows.get((call, worker), (0.0, 0.0)) for worker in range(len(self.records))])
            arrivals = both[:, 0]
            # No worker has the sum before the last one arrives, but for the noise of reading clocks.
            ends = np.maximum(both[:, 1], one.exchange.last(arrivals)).tolist()
            workers, num_bytes = one.workers(self.width), float(FLOAT_BYTES * self.floats[number])
            joined = arrivals.tolist()
            tell_all_reduce(self.builder, step, num_bytes, joined, ends, joined, one.label, one.exchange, workers)
            for worker in workers or range(len(self.records)):
                self._through(worker, step, ends[worker])

    def _messages(self, worker: int) -> None:
        """Adds the messages that a worker received, and its waits for them."""
        handed = {
            (neighbour, step, micro, backward): posted - self.zero
            for neighbour in (worker - self.width, worker + self.width)
            if 0 <= neighbour < len(self.records)
            for step, micro, backward, posted in self.records[neighbour].rows("handed")
        }
        for step, micro, backward, turned, end in self.records[worker].rows("taken"):
            source = worker + self.width if backward else worker - self.width
            if (source, step, micro, backward) not in handed:
                raise RunError(f"worker {worker} received what worker {source} does not know to have sent")
            turned, end = turned - self.zero, end - self.zero
            began = min(max(handed[source, step, micro, backward], turned), end)
            # The worker waits for the flush of the previous step, and only then for this message.
            turned = max(turned, self.flushes[int(step) - 1] if step else 0.0)
            if began > turned:
                self.builder.span(worker, SpanKind.WAIT, int(step), turned, began)
            carried = (int(step), began, end, self.num_bytes)
            self.builder.span(source, SpanKind.SEND, *carried, f"to worker {worker}")
            self.builder.span(worker, SpanKind.RECEIVE, *carried, f"from worker {source}")
            self.builder.transfer(source, worker, self.num_bytes, began, end, chunk=int(micro))
