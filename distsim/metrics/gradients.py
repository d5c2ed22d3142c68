"""Metrics of the gradients: applied or dropped, their staleness, and their samples."""

from __future__ import annotations

import numpy as np

from distsim.arrays import Floats
from distsim.trace import Trace


class UnavailableError(ValueError):
    """A metric that this trace cannot give; the message says why."""


def dropped_gradients(trace: Trace) -> int:
    """The number of gradients that arrived and went into no update. A cancelled gradient never arrived.

    Of a gradient in parts, for several servers, each part is dropped on its own: it counts once if any part was.

    >>> from distsim import example, simulate
    >>> dropped_gradients(simulate(example("synchronous_ring")))
    0
    """
    lost = trace.contributions.where(~trace.contributions.applied & ~trace.contributions.cancelled)
    return len(np.unique(np.column_stack([lost.worker, lost.step]), axis=0))


def throughput_samples_per_second(trace: Trace) -> float:
    """Samples whose gradients went into updates, per second until the last update.

    Raises UnavailableError where no update took time.

    >>> from distsim import example, simulate
    >>> round(throughput_samples_per_second(simulate(example("synchronous_ring"))))
    1817
    """
    trace.check_whole("throughput_samples_per_second(trace)")
    if trace.total_seconds <= 0.0:
        raise UnavailableError("throughput: the trace has no update that took time")
    samples = trace.scenario.samples_per_step / trace.scenario.cluster.workers  # of each worker's gradient
    return float(_weights(trace).sum()) * samples / trace.total_seconds


def staleness_histogram(trace: Trace) -> dict[int, float]:
    """The number of applied gradients with each staleness; the values add up to the number of gradients.

    A gradient may be applied in parts: FlexRR computes a step in ranges of items, each range on the version that its
    worker had read, and each of several servers applies one part of every gradient. A part counts as its share of the
    gradient's items.

    >>> from distsim import example, simulate
    >>> staleness_histogram(simulate(example("synchronous_ring")))
    {0: 200.0}
    """
    values, place = np.unique(trace.contributions.staleness, return_inverse=True)
    counts = np.bincount(place, _weights(trace), len(values))
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def mean_staleness(trace: Trace) -> float | None:
    """The mean over all applied gradients, parts counted as in `staleness_histogram`; None where there are none."""
    staleness = trace.contributions.staleness
    return float(np.average(staleness, weights=_weights(trace))) if len(staleness) else None


def _weights(trace: Trace) -> Floats:
    """For each applied row, its share of its gradient."""
    applied = trace.contributions.where(trace.contributions.applied)
    if trace.servers <= 1 and not applied.first_item.any():
        return np.ones(len(applied))  # whole gradients
    order = np.lexsort((applied.step, applied.worker))
    worker, step, items = applied.worker[order], applied.step[order], applied.items[order].astype(np.float64)
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(worker) != 0) | (np.diff(step) != 0)
    weights = np.empty(len(order))
    weights[order] = items / np.add.reduceat(items, np.flatnonzero(begins))[np.cumsum(begins) - 1]
    return weights
