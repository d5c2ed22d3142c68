"""Adds failures to a run: checkpoints interrupt the run, and a failure sets the run back to the last checkpoint.

The failure of one worker stops all workers, because an elastic launcher restarts the whole group. The run without
failures gives the useful clock. This module draws the failures and moves each moment of the useful clock to the wall
clock, to the last time the run reaches it. A checkpoint follows the first update after each `checkpoint_every`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.failures import Failures
from distsim.random_streams import Purpose, stream
from distsim.trace import SpanKind, Spans, Trace
from distsim.trace_size import largest_rows

ROUNDING = 1e-10  # a share of the time: moments that differ by less are one moment, as clocks are sums of rounded times
HOPELESS = 10_000  # a run with more failures in a row without a checkpoint never ends


@dataclass(frozen=True)
class Pause:
    """Wall-clock time in which no worker does useful work."""

    kind: SpanKind
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class WallClock:
    """The position of useful time on the wall clock.

    useful_seconds, wall_seconds: the starts of the pieces on both clocks; within a piece both clocks run equally fast.
    mishaps: the pauses after failures. checkpoint_seconds: the time of the checkpoint after each piece but the last.
    """

    useful_seconds: Floats
    wall_seconds: Floats
    mishaps: list[Pause]
    checkpoint_seconds: float

    @property
    def pauses(self) -> list[Pause]:
        """All pauses between the pieces, in the order of time."""
        saved = self.wall_seconds[:-1] + np.diff(self.useful_seconds)
        saves = [Pause(SpanKind.CHECKPOINT, start, start + self.checkpoint_seconds) for start in saved.tolist()]
        return sorted([*saves, *self.mishaps], key=attrgetter("start_seconds"))

    def at(self, useful: Floats) -> Floats:
        """Wall-clock times of moments of the useful clock; a moment with a pause gets the start of the pause."""
        return self._in_piece(_before(self.useful_seconds[1:], useful), useful)

    def between(self, start: Floats, end: Floats) -> tuple[Floats, Floats]:
        """Wall-clock starts and ends of spans from `start` to `end`; a span starts after a pause at its `start`.

        A span without a length stays before the pause.
        """
        cuts = self.useful_seconds[1:]
        last = _before(cuts, end)
        return self._in_piece(np.minimum(_until(cuts, start), last), start), self._in_piece(last, end)

    def _in_piece(self, piece: NDArray[np.intp], useful: Floats) -> Floats:
        return np.asarray(self.wall_seconds[piece] + useful - self.useful_seconds[piece])


def with_failures(trace: Trace, failures: Failures, seed: int) -> Trace:
    """The run of `trace` with checkpoints and failures. Raises InputError if the run would never end.

    The spans between useful work are CHECKPOINT, LOST (work that a failure undid) and RESTART, on every worker.
    """
    clock = wall_clock(trace.updates.time_seconds, failures, seed, trace.workers)
    spans = _pieces(trace.spans, clock.useful_seconds[1:])
    starts, ends = clock.between(spans.start_seconds, spans.end_seconds)
    begun, arrived = clock.between(trace.transfers.start_seconds, trace.transfers.end_seconds)
    return replace(
        trace,
        spans=_joined(replace(spans, start_seconds=starts, end_seconds=ends), clock.pauses, trace.workers),
        transfers=replace(trace.transfers, start_seconds=begun, end_seconds=arrived),
        updates=replace(trace.updates, time_seconds=clock.at(trace.updates.time_seconds)),
    )


def wall_clock(updates: Floats, failures: Failures, seed: int, workers: int) -> WallClock:
    """Draws the failures of `workers` workers in a run whose updates happen at these useful times."""
    coming = _failures(failures.mean_time_between_seconds, seed, workers)
    return played(goals(updates, failures.checkpoint_every_seconds), failures, coming, workers)


def played(goals: Floats, failures: Failures, coming: Iterator[float], workers: int) -> WallClock:
    """Adds failures at these wall-clock times to a run with these `goals`."""
    cost = failures.checkpoint_cost_seconds
    reached_at = goals + cost * np.arange(1, len(goals) + 1)  # on the wall clock without failures, saving included
    reached_at[-1] -= cost
    begun_at = np.concatenate([[0.0], reached_at[:-1]])
    late, lateness = 0.0, np.zeros(len(goals))  # the delay by failures until now, and at each goal
    reached = in_a_row = 0
    mishaps: list[Pause] = []
    failure, most = next(coming), largest_rows()
    while True:
        before, reached = reached, max(reached, int(np.searchsorted(reached_at, failure - late, side="right")))
        lateness[before:reached] = late
        if reached == len(goals):
            return WallClock(np.concatenate([[0.0], goals[:-1]]), begun_at + lateness, mishaps, cost)
        in_a_row = in_a_row + 1 if reached == before else 1
        mishaps.append(Pause(SpanKind.LOST, float(begun_at[reached]) + late, failure))
        began, now = failure, failure + failures.restart_cost_seconds
        while (failure := next(coming)) < now and in_a_row <= HOPELESS:  # the run fails again during the restart
            now = failure + failures.restart_cost_seconds
            in_a_row += 1
        mishaps.append(Pause(SpanKind.RESTART, began, now))
        late = now - float(begun_at[reached])
        if in_a_row > HOPELESS or (reached + len(mishaps)) * workers > most:
            raise InputError.of(
                "failures.mean_time_between", failures.mean_time_between_seconds,
                f"lets {workers} workers fail {HOPELESS} times in a row before the next checkpoint"
                if in_a_row > HOPELESS else f"lets {workers} workers fail too often between two checkpoints",
                "checkpoint more often, or make failures rarer",
            )  # fmt: skip


def _failures(mean_seconds: float, seed: int, workers: int) -> Iterator[float]:
    return (time for time, _ in failing(mean_seconds, seed, workers))


def failing(mean_seconds: float, seed: int, workers: int) -> Iterator[tuple[float, int]]:
    """Endless pairs in the order of time: the wall-clock time of a failure, and the worker that fails."""
    generators = [stream(seed, Purpose.FAILURE, worker) for worker in range(workers)]
    coming = [(generator.exponential(mean_seconds), worker) for worker, generator in enumerate(generators)]
    heapify(coming)
    while True:
        time, worker = coming[0]
        yield time, worker
        heapreplace(coming, (time + generators[worker].exponential(mean_seconds), worker))


def goals(updates: Floats, every_seconds: float) -> Floats:
    """Useful times: of the updates after which the state is saved, and at last the end of the run (no saving)."""
    times = np.sort(updates).tolist() or [0.0]
    end = times.pop()
    found = [0.0]
    place = 0
    while (place := bisect_left(times, every_seconds, place, key=lambda time: time - found[-1])) < len(times):
        found.append(times[place])
    return np.array([*found[1:], end])


def _before(cuts: Floats, moments: Floats) -> NDArray[np.intp]:
    """How many cuts come before each of these moments."""
    return np.searchsorted(cuts * (1.0 + ROUNDING), moments, side="left")


def _until(cuts: Floats, moments: Floats) -> NDArray[np.intp]:
    """How many cuts come before, or at, each of these moments."""
    return np.searchsorted(cuts * (1.0 - ROUNDING), moments, side="right")


def _pieces(spans: Spans, cuts: Floats) -> Spans:
    """The spans, each cut at every pause within it."""
    first = _until(cuts, spans.start_seconds)
    inside = np.maximum(_before(cuts, spans.end_seconds) - first, 0)
    row = np.repeat(np.arange(len(spans)), inside + 1)
    place = np.arange(len(row)) - np.repeat(np.cumsum(inside + 1) - inside - 1, inside + 1)  # within the span
    pieces = spans.where(row)
    bounds = np.concatenate([cuts, [np.inf]])  # inf is indexed where no cut follows a span, but never used
    at = first[row] + place
    return replace(
        pieces,
        start_seconds=np.where(place > 0, bounds[np.maximum(at - 1, 0)], pieces.start_seconds),
        end_seconds=np.where(place < inside[row], bounds[np.minimum(at, len(cuts))], pieces.end_seconds),
    )


def _stacked(*tables: Spans) -> Spans:
    columns = [table.columns() for table in tables]
    return Spans.of_columns({name: np.concatenate([column[name] for column in columns]) for name in Spans.dtypes})


def _joined(spans: Spans, pauses: list[Pause], workers: int) -> Spans:
    rows = [
        (worker, pause.kind, number, pause.start_seconds, pause.end_seconds, 0.0, "")
        for number, pause in enumerate(pauses)
        for worker in range(workers)
        if pause.end_seconds > pause.start_seconds
    ]
    return _stacked(spans, Spans.of_rows(rows)) if rows else spans
