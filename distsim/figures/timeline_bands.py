"""The panel of a run with more workers than a screen has lanes for: bands instead of the workers' lanes.

The height of a band tells how many workers compute, communicate or wait at that time. Servers keep their lanes.
"""

from __future__ import annotations

import numpy as np

from distsim.arrays import Floats
from distsim.figures.theme import CATEGORIES, CATEGORY_OF, INK, Look
from distsim.figures.timeline_bars import FULL, SERVER_ROWS
from distsim.figures.timeline_lanes import Drawing, LaneAxis, Window, gradients_lost, of_spans, updates
from distsim.figures.wording import counted
from distsim.trace import SpanKind, Spans, Trace

ROWS = 8  # of a server's height, for all workers together
CELLS = 150  # of time, across the window
TICKS = 4


def axis(trace: Trace) -> LaneAxis:
    """A scale of workers, from the floor of the bands up, and a lane for each server."""
    counts = [round(trace.workers * part / TICKS) for part in range(TICKS + 1)]
    names = {_height(trace, count): counted(count, "worker") for count in counts}
    for server in range(trace.servers):
        names[ROWS + SERVER_ROWS * server + 0.5] = trace.lane(trace.workers + server)
    return LaneAxis(ROWS + SERVER_ROWS * trace.servers, names, trace.servers)


def bands(trace: Trace, window: Window) -> list[Drawing]:
    """The drawings of one run: a band for each category, the servers' bars, updates, and gradients not applied."""
    edges = np.linspace(window.start_seconds, window.end_seconds, CELLS + 1)
    middles = np.round((edges[1:] + edges[:-1]) / 2 * window.scale, 4)
    drawn: list[Drawing] = []
    below = np.zeros(CELLS)
    for look, count in workers_busy(trace, edges).items():
        drawn.append(_band(trace, look, middles, below, below + count, window.unit))
        below = below + count
    of_servers = of_spans(trace, window, trace.spans.where(trace.spans.worker >= trace.workers), edges[1] - edges[0])
    shift = ROWS - trace.workers
    drawn += [bars | {"y": bars["y"] + np.float32(shift)} for bars in of_servers]
    drawn += updates(trace, window, ROWS + SERVER_ROWS * trace.servers)
    drawn += [lost | {"y": np.full(len(lost["y"]), -0.5)} for lost in gradients_lost(trace, window)]
    return drawn


def workers_busy(trace: Trace, edges_seconds: Floats) -> dict[Look, Floats]:
    """For each category, how many workers are in it, as a mean over the time between two edges.

    A worker that communicates while it computes counts as computing. Categories in which no worker is are left out.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring").replacing({"cluster.workers": 40}))
    >>> {look.name: count.round(1).tolist() for look, count in workers_busy(trace, np.array([0.0, 0.02])).items()}
    {'compute': [40.0]}
    """
    of_workers = trace.spans.where(trace.spans.worker < trace.workers)
    category = np.array([CATEGORIES.index(CATEGORY_OF[kind]) for kind in SpanKind])[of_workers.kind]
    free = np.ones((trace.workers, len(edges_seconds) - 1))
    found = {}
    for number, look in enumerate(CATEGORIES):
        own = of_workers.where(category == number)
        share = np.minimum(_share_of_time(own, edges_seconds, trace.workers), free)
        free -= share
        if share.any():
            found[look] = np.asarray(share.sum(axis=0))
    return found


def _share_of_time(spans: Spans, edges: Floats, workers: int) -> Floats:
    """For each worker, the share of the time between two edges that the spans cover; at most 1, where they overlap."""
    if not len(spans):
        return np.zeros((workers, len(edges) - 1))
    # Each worker is shifted to a later time, so that one search serves all workers.
    apart = float(max(spans.end_seconds.max(), edges[-1]) - min(spans.start_seconds.min(), edges[0])) + 1.0
    times = edges + apart * np.arange(workers)[:, np.newaxis]

    def elapsed(since: Floats) -> Floats:
        """The sum over all spans of the time that has passed since these moments."""
        moments = np.sort(since + apart * spans.worker)
        past = np.searchsorted(moments, times)
        return np.asarray(past * times - np.concatenate([[0.0], np.cumsum(moments)])[past])

    covered = np.diff(elapsed(spans.start_seconds) - elapsed(spans.end_seconds), axis=1)
    return np.asarray(np.clip(covered / np.diff(edges), 0.0, 1.0).round(9))


def _height(trace: Trace, count: float) -> float:
    """Where so many workers end, in rows from the top of the panel."""
    return ROWS - 0.5 - (ROWS - 0.5 + FULL / 2 - 0.3) * count / trace.workers


def _band(trace: Trace, look: Look, times: Floats, low: Floats, high: Floats, unit: str) -> Drawing:
    count = high - low
    lower, upper = (np.array([_height(trace, float(value)) for value in edge]).round(3) for edge in (low, high))
    pattern = {"shape": look.pattern, "fgcolor": INK, "fgopacity": 0.4, "size": 6, "solidity": 0.2}
    return {
        "type": "scatter", "name": look.name, "mode": "lines", "fill": "toself", "fillcolor": look.colour,
        "fillpattern": pattern | {"fillmode": "overlay"}, "line": {"color": INK, "width": 0.6}, "hoveron": "points",
        "x": np.concatenate([times, times[::-1]]), "y": np.concatenate([upper, lower[::-1]]),
        "customdata": np.concatenate([count, count[::-1]]).round(1),
        "hovertemplate": f"<b>{look.name}: %{{customdata}} of {trace.workers} workers</b><br>"
        f"%{{x:.3f}} {unit}<extra></extra>",
    }  # fmt: skip
