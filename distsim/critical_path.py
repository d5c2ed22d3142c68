"""The critical path of a run: the chain of spans that the last update had to wait for, one after the other.

The path is walked backwards from the last update: the cause is the span that ended last before now, on this rank or on
the rank that it waited for; the start of that span is the new now. Source: Böhme et al. 2012, Scalable critical-path
based performance analysis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distsim.trace import SpanKind, Spans, Trace

SIMULTANEOUS_SECONDS = {"simulated": 1e-9, "measured": 2e-3}  # apart on the clock, at most


@dataclass(frozen=True)
class CriticalPath:
    """spans: in the order of time, each from where the one before ended. gap_seconds: time that no span explains."""

    spans: Spans
    gap_seconds: float

    def seconds_by_kind(self) -> dict[str, float]:
        """How much of the path each kind of span takes."""
        durations = self.spans.end_seconds - self.spans.start_seconds
        kinds = {kind: float(durations[self.spans.kind == kind].sum()) for kind in SpanKind}
        return {kind.text: seconds for kind, seconds in kinds.items() if seconds > 0.0}


def critical_path(trace: Trace) -> CriticalPath:
    """The chain that leads to the last update of `trace`. Raises InputError where it is a part of a run.

    >>> from distsim import example, simulate
    >>> path = critical_path(simulate(example("backup_server")))
    >>> round(path.gap_seconds, 9), sorted(path.seconds_by_kind())
    (0.0, ['compute', 'receive', 'send'])
    """
    trace.check_whole("critical_path(trace)")
    slack = SIMULTANEOUS_SECONDS[trace.producer]
    spans = trace.spans.where(trace.spans.kind != SpanKind.WAIT)
    spans = spans.where(spans.end_seconds > spans.start_seconds)
    spans = spans.where(np.argsort(spans.end_seconds, kind="stable"))
    chosen: list[int] = []
    now, rank, gap = trace.total_seconds, -1, 0.0
    while now > slack:
        # Everything that ended at this moment, or, where nothing did, what ended last before it.
        last = int(np.searchsorted(spans.end_seconds, now + slack, side="right")) - 1
        while last >= 0 and spans.start_seconds[last] >= now - slack:
            last -= 1  # it began at this moment: an effect, not a cause
        if last < 0:
            gap += now
            break
        first = int(np.searchsorted(spans.end_seconds, spans.end_seconds[last] - slack))
        ended = np.arange(first, last + 1)
        ended = ended[spans.start_seconds[ended] < now - slack]
        own = ended[spans.worker[ended] == rank]
        # Of several the rank's own comes first, then the one that began last: it left the others no time to matter.
        candidates = own if len(own) else ended
        row = int(candidates[np.argmax(spans.start_seconds[candidates])])
        gap += max(now - float(spans.end_seconds[row]), 0.0)
        chosen.append(row)
        now, rank = float(spans.start_seconds[row]), int(spans.worker[row])
    return CriticalPath(spans.where(np.array(chosen[::-1], dtype=np.intp)), gap)
