"""How each worker spends its time until the last update: compute, exposed communication, waiting, and pauses.

"Exposed" communication is communication that no compute hides. Waiting is the rest of the time. In a run with failures
the rest includes checkpoints, work that a failure undid, and restarts: `paused_seconds` tells how much each takes.
"""

from __future__ import annotations

import numpy as np

from distsim.arrays import Floats
from distsim.trace import COMMUNICATION_KINDS, COMPUTE_KINDS, PAUSE_KINDS, SpanKind, Spans, Trace

PARTS = ("compute", "communication", "waiting")


def worker_seconds(trace: Trace) -> dict[str, Floats]:
    """Each worker's seconds until the last update by part (`PARTS`), shape (workers,); the parts add up to the total.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> parts = worker_seconds(trace)
    >>> bool(np.allclose(sum(parts.values()), trace.total_seconds))
    True
    """
    total = trace.total_seconds
    compute = trace.spans.of_kind(*COMPUTE_KINDS)
    busy = trace.spans.of_kind(*COMPUTE_KINDS, *COMMUNICATION_KINDS)
    computing, working = _covered(compute, trace.workers, total), _covered(busy, trace.workers, total)
    # Two sums of the same seconds can differ by a rounding, so a difference could fall below 0.
    exposed, waiting = np.maximum(working - computing, 0.0), np.maximum(total - working, 0.0)
    return {"compute": computing, "communication": exposed, "waiting": waiting}


def paused_seconds(trace: Trace) -> dict[SpanKind, Floats]:
    """The seconds of each worker's waiting that `PAUSE_KINDS` take, shape (workers,), for the kinds in the trace.

    >>> from distsim import example, simulate
    >>> paused_seconds(simulate(example("synchronous_ring")))
    {}
    """
    counted = trace.spans.of_kind(*COMPUTE_KINDS, *COMMUNICATION_KINDS, *PAUSE_KINDS)
    found: dict[SpanKind, Floats] = {}
    kinds = [*COMPUTE_KINDS, *COMMUNICATION_KINDS]
    present = [kind for kind in PAUSE_KINDS if (counted.kind == kind).any()]
    before = _covered(counted.of_kind(*kinds), trace.workers, trace.total_seconds) if present else np.empty(0)
    for kind in present:
        kinds.append(kind)
        until = _covered(counted.of_kind(*kinds), trace.workers, trace.total_seconds)
        found[kind], before = np.maximum(until - before, 0.0), until  # a rounding could fall below 0
    return found


def goodput(trace: Trace) -> float | None:
    """The share of the time until the last update that was not lost to checkpoints, failures and restarts.

    None where no update took time.

    >>> from distsim import example, simulate
    >>> goodput(simulate(example("synchronous_ring")))
    1.0
    """
    if trace.total_seconds <= 0.0:
        return None
    lost = _covered(trace.spans.of_kind(*PAUSE_KINDS), trace.workers, trace.total_seconds)
    return 1.0 - float(lost.mean()) / trace.total_seconds


def _covered(spans: Spans, workers: int, total: float) -> Floats:
    """Seconds of [0, total] that lie in at least one of a worker's spans, shape (workers,)."""
    order = np.lexsort((spans.start_seconds, spans.worker))
    starts = np.clip(spans.start_seconds[order], 0.0, total)
    ends = np.clip(spans.end_seconds[order], 0.0, total)
    first = np.searchsorted(spans.worker[order], np.arange(workers + 1))
    seconds = np.zeros(workers)
    for worker in np.flatnonzero(np.diff(first)):
        own = slice(first[worker], first[worker + 1])
        latest = np.maximum.accumulate(ends[own])
        begins = np.maximum(starts[own], np.concatenate([[0.0], latest[:-1]]))
        seconds[worker] = np.maximum(latest - begins, 0.0).sum()
    return seconds
