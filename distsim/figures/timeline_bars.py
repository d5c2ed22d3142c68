"""The bars of a timeline, computed from one trace without plotly.

A worker has one row; its rank is the middle of the row. A span fills the height of the row. If a worker communicates
while it computes, the communication takes the lower half of the row. A server may receive and send at once, so it has
two rows: receives above, sends below. Receives of a server that overlap become one bar, and so do its sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distsim.arrays import Floats, Indices, Integers
from distsim.figures.theme import CATEGORIES, CATEGORY_OF, Look
from distsim.trace import COMMUNICATION_KINDS, COMPUTE_KINDS, Contributions, SpanKind, Spans, Trace

FULL, HALF = 0.8, 0.4
SERVER_ROWS = 2
SAME_SECONDS, SAME_NANOSECOND = 1e-12, 1e-9


@dataclass(frozen=True)
class Bars:
    """Bars as columns: middle and height in rows (rank 0 on top), times in seconds, and the texts for hovering."""

    middle: Floats
    height: Floats
    start_seconds: Floats
    end_seconds: Floats
    bytes: Floats
    step: Integers
    text: list[str]

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True)
class Drops:
    """Gradients that were not applied and share one fate, "dropped" or "cancelled".

    rank: the worker of each gradient. server: the rank of the server, or NO_SERVER; each of several servers
    drops its own share of a gradient. seconds: when the gradient was dropped or cancelled.
    """

    fate: str
    rank: Indices
    server: Indices
    seconds: Floats
    text: list[str]


def rows(trace: Trace) -> int:
    """The number of rows of all lanes of a trace."""
    return trace.workers + SERVER_ROWS * trace.servers


def row_of(trace: Trace, rank: Any) -> Any:
    """The middle of a rank's lane, in rows; `rank` may be an array.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("backup_server"))
    >>> row_of(trace, 4), row_of(trace, 5)
    (4.0, 5.5)
    """
    first = np.where(rank < trace.workers, rank, trace.workers + SERVER_ROWS * (rank - trace.workers) + 0.5)
    return first if first.ndim else float(first)


def bars(
    trace: Trace, start_seconds: float, end_seconds: float, spans: Spans | None = None, gap_seconds: float = 0.0
) -> dict[Look, Bars]:
    """The bars that overlap the window, by category; bars at the window's edges are not cut.

    spans: the spans of the trace to draw; None draws all. gap_seconds: bars of a server that are no farther apart
    become one bar; 0 joins only bars that overlap.
    """
    drawn_of = trace.spans if spans is None else spans
    shown = drawn_of.where((drawn_of.end_seconds >= start_seconds) & (drawn_of.start_seconds <= end_seconds))
    of_workers = shown.where(shown.worker < trace.workers)
    compute = trace.spans.of_kind(*COMPUTE_KINDS)
    compute = compute.where((compute.end_seconds >= start_seconds) & (compute.start_seconds <= end_seconds))
    of_servers, counts = _merged(shown.where(shown.worker >= trace.workers), gap_seconds)
    pairs = zip(of_workers.columns().values(), of_servers.columns().values(), strict=True)
    drawn = Spans(*(np.concatenate(pair) for pair in pairs))
    counts = np.concatenate([np.ones(len(of_workers), dtype=np.int64), counts])
    offset, height = (
        np.concatenate(pair) for pair in zip(_place_worker(of_workers, compute), _place_server(of_servers), strict=True)
    )
    middle = row_of(trace, drawn.worker) + offset
    category = np.array([CATEGORIES.index(CATEGORY_OF[kind]) for kind in SpanKind])[drawn.kind]
    found = {}
    for number, look in enumerate(CATEGORIES):
        own = np.flatnonzero(category == number)
        if len(own):
            spans = drawn.where(own)
            texts = _texts(trace, spans, counts[own], "messages" if gap_seconds else "at once")
            times = spans.start_seconds, spans.end_seconds
            found[look] = Bars(middle[own], height[own], *times, spans.bytes, spans.step, texts)
    return found


def _merged(spans: Spans, gap_seconds: float) -> tuple[Spans, Integers]:
    """Spans of one lane and kind that overlap, or nearly so, become one span with the sum of their bytes.

    The second result is the number of spans in each.
    """
    if not len(spans):
        return spans, np.empty(0, dtype=np.int64)
    spans = spans.where(np.lexsort((spans.end_seconds, spans.start_seconds, spans.kind, spans.worker)))
    lane = spans.worker.astype(np.int64) * len(SpanKind) + spans.kind
    new_lane = np.diff(lane, prepend=lane[0] - 1) != 0
    # Each lane is shifted to a later time than the lane before, so that one running maximum serves all lanes.
    shift = np.cumsum(new_lane) * (spans.end_seconds.max() - spans.start_seconds.min() + 1.0)
    latest = np.maximum.accumulate(spans.end_seconds + shift)
    begins = new_lane.copy()
    begins[1:] |= (spans.start_seconds + shift)[1:] >= latest[:-1] + gap_seconds - SAME_SECONDS
    first = np.flatnonzero(begins)
    merged = Spans(
        spans.worker[first],
        spans.kind[first],
        np.minimum.reduceat(spans.step, first),
        spans.start_seconds[first],
        np.maximum.reduceat(spans.end_seconds, first),
        np.add.reduceat(spans.bytes, first),
        spans.label[first],
    )
    return merged, np.diff(first, append=len(spans))


def _place_server(spans: Spans) -> tuple[Floats, Floats]:
    """Offset from the lane's middle, and height: receives are above, sends below; other spans fill both rows."""
    offset = np.select([spans.kind == SpanKind.RECEIVE, spans.kind == SpanKind.SEND], [-0.5, 0.5], default=0.0)
    return offset, np.where(offset == 0.0, FULL + 1.0, FULL)


def _place_worker(spans: Spans, compute: Spans) -> tuple[Floats, Floats]:
    """Offset and height: communication during compute fills the lower half of the row, other spans the whole row."""
    hidden = np.zeros(len(spans), dtype=np.bool_)
    if len(spans) and len(compute):
        compute = compute.where(np.lexsort((compute.start_seconds, compute.worker)))
        both = (spans, compute)
        times = np.concatenate([*(of.start_seconds for of in both), *(of.end_seconds for of in both)])
        apart = np.ptp(times) + 1.0  # each lane is shifted to a later time, so that one search serves all lanes
        moved = np.flatnonzero(np.isin(spans.kind, COMMUNICATION_KINDS))
        # A worker's compute spans never overlap, so only the last one that starts before the end can overlap it.
        until = spans.end_seconds[moved] + apart * spans.worker[moved] - SAME_NANOSECOND
        last = np.searchsorted(compute.start_seconds + apart * compute.worker, until) - 1
        own = (last >= 0) & (compute.worker[last] == spans.worker[moved])
        hidden[moved] = own & (compute.end_seconds[last] > spans.start_seconds[moved] + SAME_NANOSECOND)
    return np.where(hidden, (FULL - HALF) / 2, 0.0), np.where(hidden, HALF, FULL)


def _texts(trace: Trace, spans: Spans, counts: Integers, merged: str) -> list[str]:
    lanes = [trace.lane(rank) for rank in range(trace.workers + trace.servers)]
    kinds = [kind.words for kind in SpanKind]
    return [
        f"{lanes[rank]}: {kinds[kind]}"
        + (f" ({count} {merged})" if count > 1 else f" {label}" if rank >= trace.workers and label else "")
        for rank, kind, label, count in zip(
            spans.worker.tolist(), spans.kind.tolist(), spans.label.tolist(), counts.tolist(), strict=True
        )
    ]


def drops(trace: Trace, start_seconds: float, end_seconds: float) -> list[Drops]:
    """Dropped and cancelled gradients within the window, each at the time of its end.

    A dropped gradient ends when its push arrives at the server. A cancelled gradient ends with the worker's last span
    of that step, which was aborted.
    """
    lost = trace.contributions.where(~trace.contributions.applied)
    if not len(lost):
        return []
    seconds = _ends(trace, lost)
    shown = (seconds >= start_seconds) & (seconds <= end_seconds)
    found = []
    for fate, rows_of_fate in (("dropped", ~lost.cancelled), ("cancelled", lost.cancelled)):
        own = lost.where(shown & rows_of_fate)
        gradients = zip(own.worker.tolist(), own.step.tolist(), strict=True)
        text = [f"{trace.lane(worker)}: gradient of step {step} {fate}" for worker, step in gradients]
        if text:
            found.append(Drops(fate, own.worker, own.server, seconds[shown & rows_of_fate], text))
    return found


def _ends(trace: Trace, lost: Contributions) -> Floats:
    """The time in seconds when each of these gradients ended; nan if no span tells the time."""
    spans = trace.spans.where(np.isin(trace.spans.step, lost.step))
    last: dict[tuple[int, int], float] = {}  # by worker and step
    own = spans.where((spans.worker < trace.workers) & np.isin(spans.kind, (*COMPUTE_KINDS, SpanKind.SEND)))
    for worker, step, end in zip(own.worker.tolist(), own.step.tolist(), own.end_seconds.tolist(), strict=True):
        last[worker, step] = max(end, last.get((worker, step), end))
    pushes = spans.where((spans.worker >= trace.workers) & (spans.kind == SpanKind.RECEIVE))
    keys = zip(pushes.worker.tolist(), pushes.step.tolist(), pushes.label.tolist(), strict=True)
    arrived = dict(zip(keys, pushes.end_seconds.tolist(), strict=True))
    gradients = zip(
        lost.worker.tolist(), lost.step.tolist(), lost.server.tolist(), lost.cancelled.tolist(), strict=True
    )
    return np.array(
        [
            end if cancelled else arrived.get((server, step, f"from worker {worker}"), end)
            for worker, step, server, cancelled in gradients
            for end in [last.get((worker, step), np.nan)]
        ]
    )
