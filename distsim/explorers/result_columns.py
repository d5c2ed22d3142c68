"""Columns of a run's results that the tables of several explorers share."""

from __future__ import annotations

from distsim.figures.captioned import Row
from distsim.metrics import summary, throughput_samples_per_second
from distsim.trace import Trace

STEP, TOTAL, IDLE = "step time, median (ms)", "total (s)", "idle share (%)"
GRADIENTS, STALENESS = "gradients per second", "mean staleness (updates)"
DROPPED, CANCELLED = "dropped gradients", "cancelled gradients"


def results(trace: Trace, *columns: str) -> Row:
    """The chosen columns of a run that has steps, in the given order.

    >>> import distsim
    >>> results(distsim.simulate(distsim.example("synchronous_ring")), DROPPED)
    {'dropped gradients': 0}
    """
    found = summary(trace)
    assert found.step_seconds is not None, "explorers simulate runs that have steps"
    every = {
        STEP: 1e3 * found.step_seconds.median,
        TOTAL: found.total_seconds,
        IDLE: None if found.idle_share is None else 100.0 * found.idle_share,
        GRADIENTS: throughput_samples_per_second(trace) / trace.scenario.workload.batch,
        STALENESS: found.mean_staleness,
        DROPPED: found.dropped_gradients,
        CANCELLED: int(trace.contributions.cancelled.sum()),
    }
    return {column: every[column] for column in columns}
