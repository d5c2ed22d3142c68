"""The computation of workers, in any role."""

from __future__ import annotations

from collections.abc import Sequence

from distsim.runtime.recording.recorder import Record
from distsim.trace import SpanKind, TraceBuilder

PARTS = {SpanKind.COMPUTE: "computes", SpanKind.FORWARD: "forwards", SpanKind.BACKWARD: "backwards"}  # and their tables


def tell_computes(builder: TraceBuilder, records: Sequence[Record], zero: float) -> None:
    """The spans in which workers compute: forward and backward where there is a model, then the drawn time."""
    for worker, record in enumerate(records):
        for kind, table in PARTS.items():
            for step, *_, start, end in record.rows(table):
                builder.span(worker, kind, int(step), start - zero, end - zero)
