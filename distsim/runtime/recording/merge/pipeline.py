"""Merges the records of a pipeline's stages, in the words of `engine.pipeline`.

A message travels from the moment at which its source has it and its target waits for it, until the target begins the
forward or backward that needs it.
"""

from __future__ import annotations

from distsim.errors import RunError
from distsim.runtime.recording.recorder import Record
from distsim.trace import SpanKind, TraceBuilder


class PipelineMerge:
    """The trace of stages that pass micro-batches forth and gradients back."""

    def __init__(self, records: list[Record], zero: float) -> None:
        self.records, self.zero = records, zero
        self.builder = TraceBuilder()
        self.num_bytes = float(records[0].facts["num_bytes"])
        through = [self._pieces(stage) for stage in range(len(records))]
        self.flushes = [max(ends) for ends in zip(*through, strict=True)]
        for stage, ends in enumerate(through):
            self._messages(stage)
            for step, (end, flush) in enumerate(zip(ends, self.flushes, strict=True)):
                self.builder.applied(step + 1, stage, step, read_version=step)
                if flush > end:
                    self.builder.span(stage, SpanKind.WAIT, step, end, flush)
        for step, flush in enumerate(self.flushes):
            self.builder.update(step + 1, flush)

    def _pieces(self, stage: int) -> list[float]:
        """Adds the spans of a stage's compute; returns when the stage ended each step."""
        ends: dict[float, float] = {}
        for step, micro, backward, start, end in self.records[stage].rows("passes"):
            kind = SpanKind.BACKWARD if backward else SpanKind.FORWARD
            label = f"micro-batch {int(micro)}"
            self.builder.span(stage, kind, int(step), start - self.zero, end - self.zero, label=label)
            ends[step] = end - self.zero
        return [ends[step] for step in sorted(ends)]

    def _messages(self, stage: int) -> None:
        """Adds the messages that a stage received, and its waits for them."""
        handed = {
            (neighbour, step, micro, backward): posted - self.zero
            for neighbour in (stage - 1, stage + 1)
            if 0 <= neighbour < len(self.records)
            for step, micro, backward, posted in self.records[neighbour].rows("handed")
        }
        for step, micro, backward, turned, end in self.records[stage].rows("taken"):
            source = stage + 1 if backward else stage - 1
            if (source, step, micro, backward) not in handed:
                raise RunError(f"stage {stage} received what stage {source} does not know to have sent")
            turned, end = turned - self.zero, end - self.zero
            began = min(max(handed[source, step, micro, backward], turned), end)
            # The stage waits for the flush of the previous step, and only then for this message.
            turned = max(turned, self.flushes[int(step) - 1] if step else 0.0)
            if began > turned:
                self.builder.span(stage, SpanKind.WAIT, int(step), turned, began)
            carried = (int(step), began, end, self.num_bytes)
            self.builder.span(source, SpanKind.SEND, *carried, f"to worker {stage}")
            self.builder.span(stage, SpanKind.RECEIVE, *carried, f"from worker {source}")
            self.builder.transfer(source, stage, self.num_bytes, began, end, chunk=int(micro))
