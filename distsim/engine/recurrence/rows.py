"""The start and end of every recurrence: all drawn times as one array, and all rows of a trace as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Flags, Floats
from distsim.compute import ComputeTimes
from distsim.engine.simulated_hosts import ROUNDING
from distsim.scenario import Scenario
from distsim.trace import NO_SERVER, SpanKind, Spans, Trace, TraceBuilder, Transfers
from distsim.trace.tables import blank_columns
from distsim.trace.texts import Texts

Labels = tuple[Any, Sequence[str]]  # the number of the text of each span, and the texts

NO_LABEL: Labels = (0, ("",))


def drawn_seconds(scenario: Scenario) -> Floats:
    """Seconds of each step's drawn work, without a profile's, shape (steps, workers)."""
    return _by_step(scenario, scenario.compute_times())


def step_seconds(scenario: Scenario) -> Floats:
    """Seconds of each step's whole work, shape (steps, workers)."""
    return _by_step(scenario, scenario.simulated_times())


def _by_step(scenario: Scenario, times: ComputeTimes) -> Floats:
    return np.stack(
        [times.first(worker, scenario.steps)[: scenario.steps] for worker in range(scenario.cluster.workers)], axis=1
    )


@dataclass(frozen=True)
class SpanBlock:
    """Spans. Every value is broadcast to the shape of `end_seconds`. chosen: the places that hold a span, or all."""

    kind: Any
    worker: Any
    step: Any
    start_seconds: Any
    end_seconds: Floats
    bytes: Any
    label: Any
    chosen: NDArray[np.intp] | None

    @property
    def count(self) -> int:
        return self.end_seconds.size if self.chosen is None else len(self.chosen)

    def write(self, target: NDArray[Any], values: Any) -> None:
        """Fills `target`, a part of a column, with this block's rows."""
        if self.chosen is None:
            target.reshape(self.end_seconds.shape)[...] = values
        elif isinstance(values, np.ndarray):
            target[...] = np.broadcast_to(values, self.end_seconds.shape).ravel().take(self.chosen)
        else:
            target[...] = values


class SpanRows:
    """Collects spans as arrays, and then copies each array once to its place in the common columns.

    >>> rows = SpanRows()
    >>> rows.add(SpanKind.COMPUTE, np.arange(2), 0, start=np.zeros(2), end=np.ones(2))
    >>> rows.add(SpanKind.RECEIVE, 2, 0, 1.0, np.full(2, 3.0), label=(np.arange(2), ["from worker 0", "from worker 1"]))
    >>> np.asarray(rows.columns()["label"]).tolist()
    ['', '', 'from worker 0', 'from worker 1']
    """

    def __init__(self) -> None:
        self.blocks: list[SpanBlock] = []
        self.texts: dict[str, int] = {}

    def add(
        self,
        kind: Any,
        worker: Any,
        step: Any,
        start: Any,
        end: Floats,
        num_bytes: Any = 0.0,
        label: Labels = NO_LABEL,
        where: Flags | None = None,
    ) -> None:
        """Adds a span for each entry of `end`, or for entries in `where`. Other values are broadcast to `end`."""
        numbers, texts = label
        number = np.array([self.texts.setdefault(text, len(self.texts)) for text in texts], dtype=np.int32)[numbers]
        chosen = None if where is None else np.flatnonzero(where)
        self.blocks.append(SpanBlock(kind, worker, step, start, end, num_bytes, number, chosen))

    def add_waits(self, worker: Any, step: Any, start: Floats, end: Floats, label: Labels = NO_LABEL) -> None:
        """Adds waits from `start` until `end`, of one shape, for the workers that do wait."""
        self.add(SpanKind.WAIT, worker, step, start, end, label=label, where=end - start > ROUNDING * end)

    def columns(self) -> dict[str, NDArray[Any] | Texts]:
        """The columns of all rows for `TraceBuilder.extend`."""
        counts = [block.count for block in self.blocks]
        texts = list(self.texts)
        columns = blank_columns(Spans.dtypes | {"label": np.min_scalar_type(len(texts))}, sum(counts))
        first = 0
        for block, count in zip(self.blocks, counts, strict=True):
            rows = slice(first, first + count)
            first += count
            for name, column in columns.items():
                block.write(column[rows], getattr(block, name))
        return columns | {"label": Texts(columns["label"], texts)}


def tell_updates(builder: TraceBuilder, times: Floats, workers: int, together: int, steps: int) -> None:
    """Writes the peers' updates at `times`. Each sums `together` of every worker's first `steps` steps, or the rest."""
    versions = np.arange(1, len(times) + 1)
    builder.extend("updates", version=versions, server=np.full(len(times), NO_SERVER), time_seconds=times)
    step = np.repeat(np.arange(steps), workers)
    rows = len(step)
    builder.extend(
        "contributions",
        version=step // together + 1, server=np.full(rows, NO_SERVER, np.int32),
        worker=np.tile(np.arange(workers, dtype=np.int32), steps), step=step, read_version=step // together,
        first_item=np.zeros(rows, np.int32), items=np.ones(rows, np.int32),
        applied=np.ones(rows, dtype=bool), cancelled=np.zeros(rows, dtype=bool),
    )  # fmt: skip


def finished(builder: TraceBuilder, scenario: Scenario, transfers: Transfers) -> Trace:
    """The trace of a run simulated by recurrence."""
    trace = builder.build(
        workers=scenario.cluster.workers,
        servers=len(scenario.servers),
        producer="simulated",
        scenario=scenario.table(),
        seed=scenario.seed,
        engine="recurrence",
    )
    return replace(trace, transfers=transfers)
