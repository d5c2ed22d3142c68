"""The duration of each step, with a key by which predicted and measured steps are joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.trace import COMPUTE_KINDS, Trace


@dataclass(frozen=True)
class StepDurations:
    """Seconds of each step, with its key; the three columns have the same shape.

    worker: -1 for a global step. number: the version that the step made, or the worker's own count of steps.
    """

    worker: Integers
    number: Integers
    seconds: Floats

    def by_key(self) -> dict[tuple[int, int], float]:
        """Seconds by (worker, number)."""
        keys = zip(self.worker.tolist(), self.number.tolist(), strict=True)
        return dict(zip(keys, self.seconds.tolist(), strict=True))


def step_durations(trace: Trace) -> StepDurations:
    """The duration of each step that ended by the last update.

    A global step lasts from one update to the next, the first from 0. Without a global step, a worker's step lasts from
    the start of one compute to the start of the next.

    >>> from distsim import example, simulate
    >>> step_durations(simulate(example("synchronous_ring"))).seconds.shape
    (50,)
    """
    trace.check_whole("step_durations(trace)")
    if trace.scenario.policy.has_global_step:
        updates = trace.updates.where(np.lexsort((trace.updates.time_seconds, trace.updates.version)))
        versions, first = np.unique(updates.version, return_index=True)
        last = np.maximum.reduceat(updates.time_seconds, first) if len(first) else updates.time_seconds
        return StepDurations(np.full(len(versions), -1), versions, np.diff(last, prepend=0.0))
    return _from_compute_to_compute(trace)


def _from_compute_to_compute(trace: Trace) -> StepDurations:
    """The time between the starts of a worker's consecutive computes, where both lie before the end."""
    compute = trace.spans.of_kind(*COMPUTE_KINDS)
    compute = compute.where(compute.start_seconds <= trace.total_seconds)
    compute = compute.where(np.lexsort((compute.start_seconds, compute.worker)))
    # A step may be computed in several pieces; the first piece starts the step.
    first = np.ones(len(compute), dtype=bool)
    first[1:] = (np.diff(compute.worker) != 0) | (np.diff(compute.step) != 0)
    starts = compute.where(first)
    follows = np.flatnonzero(np.diff(starts.worker) == 0)
    return StepDurations(
        starts.worker[follows].astype(np.int64), starts.step[follows], np.diff(starts.start_seconds)[follows]
    )
