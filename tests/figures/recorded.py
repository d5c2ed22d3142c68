"""Rows of a trace written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from distsim.trace import SpanKind, TraceBuilder


def tell_all_reduce(builder: TraceBuilder, step: int, arrivals: Sequence[float], end: float) -> None:
    """Adds an all-reduce of 1 MB that worker i joins at arrivals[i], and the update that it makes at `end`."""
    last = max(arrivals)
    for worker, arrival in enumerate(arrivals):
        if last > arrival:
            builder.span(worker, SpanKind.WAIT, step, arrival, last)
        builder.span(worker, SpanKind.ALL_REDUCE, step, last, end, 1e6)
        builder.applied(step + 1, worker, step, read_version=step)
    builder.update(step + 1, end)
