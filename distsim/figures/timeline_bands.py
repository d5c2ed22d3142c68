"""The panel of a run with more workers than a screen has lanes for: bands instead of the workers' lanes.

The height of a band tells how many workers compute, communicate or wait at that time. Below the bands are the lanes of
two workers: the median by compute time, and the slowest, in figures of one or two runs. Servers keep their lanes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from distsim.arrays import Floats, Indices
from distsim.figures.theme import CATEGORIES, CATEGORY_OF, INK, Look
from distsim.figures.timeline_bars import FULL, SERVER_ROWS
from distsim.figures.timeline_lanes import DECIMALS, Drawing, LaneAxis, Window, gradients_lost, of_spans, updates
from distsim.figures.wording import counted
from distsim.trace import COMPUTE_KINDS, SpanKind, Trace

ROWS = 8  # of a server's height, for all workers together
CELLS = 120  # of time, across the window
TICKS = 4
TOO_MANY_PANELS = 3


def axis(trace: Trace, window: Window, panels: int) -> LaneAxis:
    """A scale of workers, from the floor of the bands up, a lane for each of `examples`, and one for each server."""
    counts = [round(trace.workers * part / TICKS) for part in range(TICKS + 1)]
    names = {_height(trace, count): counted(count, "worker") for count in counts}
    shown = _shown(trace, window, panels)
    for place, (word, worker) in enumerate(shown.items()):
        names[float(ROWS + place)] = f"{word}, {trace.lane(worker)}"
    first = ROWS + len(shown)
    for server in range(trace.servers):
        names[first + SERVER_ROWS * server + 0.5] = trace.lane(trace.workers + server)
    return LaneAxis(first + SERVER_ROWS * trace.servers, names, trace.servers)


def _shown(trace: Trace, window: Window, panels: int) -> dict[str, int]:
    """The workers with lanes. Three panels have no room for them, and a browser would draw too many things."""
    return examples(trace, window) if panels < TOO_MANY_PANELS else {}


def examples(trace: Trace, window: Window) -> dict[str, int]:
    """The worker that computes longest in the window and the median one; only the median one if these are alike.

    >>> import distsim
    >>> slow = {"cluster.workers": 40, "compute.slow": {7: 3.0}}
    >>> trace = distsim.simulate(distsim.example("synchronous_ring").replacing(slow))
    >>> examples(trace, Window(0.0, trace.total_seconds))["slowest"]
    7
    """
    spans = trace.spans
    found = np.flatnonzero(
        np.isin(spans.kind, COMPUTE_KINDS)
        & (spans.worker < trace.workers)
        & window.touches(spans.start_seconds, spans.end_seconds)
    )
    bounds = window.start_seconds, window.end_seconds
    within = spans.end_seconds[found].clip(*bounds) - spans.start_seconds[found].clip(*bounds)
    seconds = np.bincount(spans.worker[found], within, trace.workers)
    order = np.argsort(seconds, kind="stable")
    median, slowest = int(order[trace.workers // 2]), int(order[-1])
    alike = np.isclose(seconds[median], seconds[slowest])
    return {"median": median} | ({} if alike else {"slowest": slowest})


def bands(trace: Trace, window: Window, panels: int) -> list[Drawing]:
    """The drawings of one run: bands, the lanes of examples and servers, updates, and gradients not applied."""
    edges = np.linspace(window.start_seconds, _end(trace, window), CELLS + 1)
    sides = np.repeat(np.round(edges * window.scale, DECIMALS), 2)[1:-1]  # of each cell
    drawn: list[Drawing] = []
    below = np.zeros(CELLS)
    for look, count in workers_busy(trace, edges).items():
        drawn.append(_band(trace, look, sides, below, below + count, window.unit))
        below = below + count
    shown = list(_shown(trace, window, panels).values())
    ranks = trace.spans.worker
    few = replace(trace, spans=trace.spans.where(np.isin(ranks, shown) | (ranks >= trace.workers)))
    first = ROWS + len(shown)
    lanes = np.arange(trace.workers + 1, dtype=np.float64)  # of examples, and of the first server
    lanes[[*shown, trace.workers]] = range(ROWS, first + 1)
    for bars in of_spans(few, window, few.spans, edges[1] - edges[0]):
        own = np.minimum(np.rint(bars["y"]).astype(np.int64), trace.workers)
        drawn.append(bars | {"y": bars["y"] + (lanes[own] - own).astype(np.float32)})
    drawn += updates(trace, window, first + SERVER_ROWS * trace.servers)
    drawn += [lost | {"y": np.full(len(lost["y"]), -0.5)} for lost in gradients_lost(trace, window)]
    return drawn


def _end(trace: Trace, window: Window) -> float:
    """The end of the bands: of the window, or of the last worker's last span."""
    last = float(trace.spans.end_seconds[trace.spans.worker < trace.workers].max(initial=0.0))
    return min(window.end_seconds, last) if last > window.start_seconds else window.end_seconds


def workers_busy(trace: Trace, edges_seconds: Floats) -> dict[Look, Floats]:
    """For each category, how many workers are in it, as a mean over the time between two edges.

    A worker that communicates while it computes counts as computing. Categories in which no worker is are left out.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring").replacing({"cluster.workers": 40}))
    >>> {look.name: count.round(1).tolist() for look, count in workers_busy(trace, np.array([0.0, 0.02])).items()}
    {'compute': [40.0]}
    """
    spans = trace.spans
    within = (spans.end_seconds > edges_seconds[0]) & (spans.start_seconds < edges_seconds[-1])
    category = np.array([CATEGORIES.index(CATEGORY_OF[kind]) for kind in SpanKind])[spans.kind]
    free = np.ones((trace.workers, len(edges_seconds) - 1))
    found = {}
    for number, look in enumerate(CATEGORIES):
        own = np.flatnonzero(within & (category == number) & (spans.worker < trace.workers))
        if not len(own):
            continue
        times = spans.start_seconds[own], spans.end_seconds[own]
        share = np.minimum(_share_of_time(spans.worker[own], *times, edges_seconds, trace.workers), free)
        free -= share
        if share.any():
            found[look] = np.asarray(share.sum(axis=0))
    return found


def _share_of_time(worker: Indices, start: Floats, end: Floats, edges: Floats, workers: int) -> Floats:
    """For each worker, the share of the time between two edges that its spans cover; at most 1, where they overlap."""
    places = len(edges) + 1

    def elapsed(since: Floats) -> Floats:
        """At each edge, the sum over each worker's spans of the time that has passed since these moments."""
        cell = worker.astype(np.int64) * places + np.searchsorted(edges, since)
        count, offset = (
            np.bincount(cell, of, workers * places).reshape(workers, places)[:, :-1].cumsum(axis=1)
            for of in (None, since - edges[0])
        )
        return np.asarray(count * (edges - edges[0]) - offset)

    covered = np.diff(elapsed(start) - elapsed(end), axis=1)
    return np.asarray(np.clip(covered / np.diff(edges), 0.0, 1.0).round(9))


def _height(trace: Trace, count: float) -> float:
    """Where so many workers end, in rows from the top of the panel."""
    return ROWS - 0.5 - (ROWS - 0.5 + FULL / 2 - 0.3) * count / trace.workers


def _band(trace: Trace, look: Look, sides: Floats, low: Floats, high: Floats, unit: str) -> Drawing:
    """The band of a category as steps. sides: the two times of each cell. low, high: of each cell, in workers."""
    low, high = np.repeat(low, 2), np.repeat(high, 2)
    count = high - low
    lower, upper = (
        np.array([_height(trace, float(value)) for value in edge], np.float32).round(3) for edge in (low, high)
    )
    pattern = {"shape": look.pattern, "fgcolor": INK, "fgopacity": 0.4, "size": 6, "solidity": 0.2}
    return {
        "type": "scatter", "name": look.name, "mode": "lines", "fill": "toself", "fillcolor": look.colour,
        "fillpattern": pattern | {"fillmode": "overlay"}, "line": {"color": INK, "width": 0.6}, "hoveron": "points",
        "x": np.concatenate([sides, sides[::-1]]), "y": np.concatenate([upper, lower[::-1]]),
        "customdata": np.concatenate([count, count[::-1]]).round(1).astype(np.float32),
        "hovertemplate": f"<b>{look.name}: %{{customdata}} of {trace.workers} workers</b><br>"
        f"%{{x:.3f}} {unit}<extra></extra>",
    }  # fmt: skip
