"""How each worker spends its time until the last update: compute, exposed communication, waiting, and pauses.

"Exposed" communication is communication that no compute hides. Waiting is the rest of the time. In a run with failures
the rest includes checkpoints, work that a failure undid, and restarts: `paused_seconds` tells how much each takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distsim.arrays import Floats
from distsim.trace import COMMUNICATION_KINDS, COMPUTE_KINDS, PAUSE_KINDS, SpanKind, Spans, Trace

PARTS = ("compute", "communication", "waiting")


def worker_seconds(trace: Trace) -> dict[str, Floats]:
    """Each worker's seconds until the last update by part (`PARTS`), shape (workers,); the parts add up to the total.

    Of a part of a run, the seconds within that part.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> parts = worker_seconds(trace)
    >>> bool(np.allclose(sum(parts.values()), trace.total_seconds))
    True
    """
    start, end = trace.bounds_seconds
    computing, working = _covered(trace, *COMPUTE_KINDS), _covered(trace, *COMPUTE_KINDS, *COMMUNICATION_KINDS)
    # Two sums of the same seconds can differ by a rounding, so a difference could fall below 0.
    exposed, waiting = np.maximum(working - computing, 0.0), np.maximum(end - start - working, 0.0)
    return {"compute": computing, "communication": exposed, "waiting": waiting}


def paused_seconds(trace: Trace) -> dict[SpanKind, Floats]:
    """The seconds of each worker's waiting that `PAUSE_KINDS` take, shape (workers,), for the kinds in the trace.

    >>> from distsim import example, simulate
    >>> paused_seconds(simulate(example("synchronous_ring")))
    {}
    """
    found: dict[SpanKind, Floats] = {}
    kinds = [*COMPUTE_KINDS, *COMMUNICATION_KINDS]
    present = [kind for kind in PAUSE_KINDS if (trace.spans.kind == kind).any()]
    before = _covered(trace, *kinds) if present else np.empty(0)
    for kind in present:
        kinds.append(kind)
        until = _covered(trace, *kinds)
        found[kind], before = np.maximum(until - before, 0.0), until  # a rounding could fall below 0
    return found


def goodput(trace: Trace) -> float | None:
    """The share of the time until the last update that was not lost to checkpoints, failures and restarts.

    None where no update took time.

    >>> from distsim import example, simulate
    >>> goodput(simulate(example("synchronous_ring")))
    1.0
    """
    trace.check_whole("goodput(trace)")
    if trace.total_seconds <= 0.0:
        return None
    lost = _covered(trace, *PAUSE_KINDS)
    return 1.0 - float(lost.mean()) / trace.total_seconds


def _covered(trace: Trace, *kinds: SpanKind) -> Floats:
    """Of each worker, within the trace's bounds, shape (workers,)."""
    return covered_seconds(trace.spans, kinds, trace.workers, *trace.bounds_seconds)


def covered_seconds(spans: Spans, kinds: Sequence[SpanKind], ranks: int, start: float, end: float) -> Floats:
    """Seconds between start and end in at least one of a rank's spans of these kinds, for ranks from 0, shape (ranks,).

    Spans may overlap: a worker may wait for several servers at once.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server").replacing({"communication.servers": 3}))
    >>> bool((covered_seconds(trace.spans, [SpanKind.WAIT], trace.workers, 0.0, 1.0) < 1.0).all())
    True
    """
    rows = np.flatnonzero(np.isin(spans.kind, kinds))
    rows = rows[np.lexsort((spans.start_seconds[rows], spans.worker[rows]))]
    first = np.searchsorted(spans.worker[rows], np.arange(ranks + 1))
    seconds = np.zeros(ranks)
    counts = np.diff(first)
    for count in np.unique(counts[counts > 0]).tolist():  # ranks with equally many spans together
        alike = np.flatnonzero(counts == count)
        own = rows[first[alike][:, None] + np.arange(count)]
        latest = np.maximum.accumulate(spans.end_seconds[own].clip(start, end), axis=1)
        before = np.concatenate([np.zeros((len(alike), 1)), latest[:, :-1]], axis=1)
        begins = np.maximum(spans.start_seconds[own].clip(start, end), before)
        seconds[alike] = np.maximum(latest - begins, 0.0).sum(axis=1)
    return seconds
