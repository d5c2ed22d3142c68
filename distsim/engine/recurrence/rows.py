"""The rows of a whole run's trace, written as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.engine.recurrence.drawn import Floats
from distsim.engine.stage import ROUNDING
from distsim.scenario import Scenario
from distsim.trace import NO_SERVER, SpanKind, Trace, TraceBuilder, Transfers

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """Spans; every value is spread over the shape of `end`. where: which of them there are, or all."""

    kind: Any
    worker: Any
    step: Any
    start: Any
    end: Floats
    bytes: Any
    label: Any
    where: Mask | None

    @property
    def count(self) -> int:
        return self.end.size if self.where is None else int(np.count_nonzero(self.where))

    def write(self, target: NDArray[Any], values: Any) -> None:
        """Fills `target`, a piece of a column, with this part's rows."""
        if self.where is None:
            target.reshape(self.end.shape)[...] = values
        else:
            target[...] = np.broadcast_to(values, self.end.shape)[self.where]


class SpanRows:
    """Collects spans as arrays, and then copies each once, to its place in the columns of all.

    >>> rows = SpanRows()
    >>> rows.add(SpanKind.COMPUTE, np.arange(2), 0, start=np.zeros(2), end=np.ones(2))
    >>> rows.add(SpanKind.WAIT, np.arange(2), 0, 1.0, np.array([1.0, 3.0]), where=np.array([False, True]))
    >>> rows.columns()["worker"]
    array([0, 1, 1], dtype=int32)
    """

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def add(
        self,
        kind: Any,
        worker: Any,
        step: Any,
        start: Any,
        end: Floats,
        num_bytes: Any = 0.0,
        label: Any = "",
        where: Mask | None = None,
    ) -> None:
        """As many spans as `end` has entries, or as `where` selects of them; all other values are spread over it."""
        self.parts.append(Part(kind, worker, step, start, end, num_bytes, label, where))

    def add_waits(self, worker: Any, step: Any, start: Floats, end: Floats, label: Any = "") -> None:
        """Waiting from `start` until `end`, of one shape, by whoever does wait."""
        self.add(SpanKind.WAIT, worker, step, start, end, label=label, where=end - start > ROUNDING * end)

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All rows, as `TraceBuilder.extend` takes them."""
        counts = [part.count for part in self.parts]
        total = sum(counts)
        labels = [np.asarray(part.label) for part in self.parts]
        width = max([1, *(label.dtype.itemsize // 4 for label in labels)])
        worker, step = np.empty(total, np.int32), np.empty(total, np.int64)
        kind, label = np.empty(total, np.int8), np.zeros(total, f"U{width}")
        start, end, num_bytes = np.empty((3, total))
        first = 0
        for part, count, text in zip(self.parts, counts, labels, strict=True):
            rows = slice(first, first + count)
            first += count
            part.write(kind[rows], part.kind)
            part.write(worker[rows], part.worker)
            part.write(step[rows], part.step)
            part.write(start[rows], part.start)
            part.write(end[rows], part.end)
            part.write(num_bytes[rows], part.bytes)
            if text.size and text.dtype.itemsize > 4:
                part.write(label[rows], text)
        return {
            "worker": worker, "kind": kind, "step": step, "start_seconds": start, "end_seconds": end,
            "bytes": num_bytes, "label": label,
        }  # fmt: skip


def tell_updates(builder: TraceBuilder, times: Floats, workers: int, steps_of_each: int, steps: int) -> None:
    """Updates that peers make at `times`, each of so many of every worker's first `steps` steps; the last of the rest."""
    versions = np.arange(1, len(times) + 1)
    builder.extend("updates", version=versions, server=np.full(len(times), NO_SERVER), time_seconds=times)
    step = np.repeat(np.arange(steps), workers)
    rows = len(step)
    builder.extend(
        "contributions",
        version=step // steps_of_each + 1, server=np.full(rows, NO_SERVER, np.int32),
        worker=np.tile(np.arange(workers, dtype=np.int32), steps), step=step, read_version=step // steps_of_each,
        first_item=np.zeros(rows, np.int32), items=np.ones(rows, np.int32),
        applied=np.ones(rows, dtype=bool), cancelled=np.zeros(rows, dtype=bool),
    )  # fmt: skip


def finished(builder: TraceBuilder, scenario: Scenario, transfers: Transfers) -> Trace:
    """The trace of a run worked out by recurrence."""
    trace = builder.build(
        workers=scenario.cluster.workers,
        servers=len(scenario.servers),
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine="recurrence",
    )
    return replace(trace, transfers=transfers)
