"""FlexRR's help as rows of a trace: the ranges of items that each worker did, and the sums that helpers sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.trace import FOR_ANOTHER, NO_COLLECTIVE, Contributions, SpanKind, Texts, TraceBuilder


class Range(NamedTuple):
    """Items of a worker's step that one worker, the same or another, did in a row.

    first, items: the first item and the number of items. doer: the worker that did the items on `read_version`.
    """

    worker: int
    step: int
    first: int
    items: int
    doer: int
    read_version: int


WIDTH = len(Range._fields)


class Pieces:
    """Ranges of items, and their times; all items of a range take equally long.

    >>> pieces = Pieces()
    >>> pieces.did(*Range(worker=1, step=0, first=0, items=2, doer=1, read_version=0), 0, start=0.0, seconds=3.0)
    >>> pieces.did(*Range(worker=1, step=0, first=2, items=1, doer=0, read_version=0), 0, start=5.0, seconds=1.0)
    >>> builder = TraceBuilder()
    >>> pieces.tell(builder)
    >>> spans = builder.build(workers=2, servers=1, producer="simulated").spans
    >>> spans.worker.tolist(), spans.end_seconds.tolist(), spans.label.tolist()
    ([1, 1, 0], [3.0, 6.0, 6.0], ['item 0', 'item 1', 'for worker 1: item 2 of step 0'])
    """

    def __init__(self) -> None:
        self._rows: list[float] = []

    def did(
        self, worker: int, step: int, first: int, items: int, doer: int, read_version: int,
        doers_step: int, start: float, seconds: float,
    ) -> None:  # fmt: skip
        """Adds a range, done from `start` on during this step of the doer's own; each item takes these seconds."""
        self._rows += (worker, step, first, items, doer, read_version, doers_step, start, seconds)

    def tell(self, builder: TraceBuilder) -> None:
        """Writes a span for each item, on the worker that did the item."""
        worker, step, first, items, doer, _, doers_step, start, seconds = self._columns()
        items = items.astype(np.int64)
        rows = np.repeat(np.arange(len(items)), items)
        place = np.arange(len(rows)) - (np.cumsum(items) - items)[rows]  # in its range
        item = first.astype(np.int64)[rows] + place
        texts = [f"item {number}" for number in range(int(item.max(initial=-1)) + 1)]
        label, others = item.copy(), np.flatnonzero((worker != doer)[rows])
        label[others] = len(texts) + np.arange(len(others))
        whose = zip(*(column[rows[others]].astype(np.int64).tolist() for column in (worker, step)), strict=True)
        texts += [
            f"{FOR_ANOTHER} {whom}: item {number} of step {their_step}"
            for (whom, their_step), number in zip(whose, item[others].tolist(), strict=True)
        ]
        start, seconds = start[rows], seconds[rows]
        builder.extend(
            "spans", worker=doer[rows], kind=SpanKind.COMPUTE, step=doers_step[rows],
            start_seconds=start + place * seconds, end_seconds=start + (place + 1) * seconds, bytes=0.0,
            label=Texts(label, texts),
        )  # fmt: skip

    def ranges(self) -> Integers:
        """A row for each range, with its fields as columns."""
        return self._columns()[:WIDTH].T.astype(np.int64)

    def _columns(self) -> Floats:
        rows = np.fromiter(self._rows, np.float64, len(self._rows))
        return np.ascontiguousarray(rows.reshape(-1, WIDTH + 3).T)


class Sums:
    """The sums of gradients of pieces that helpers sent. num_bytes: the size of each sum."""

    def __init__(self, num_bytes: float) -> None:
        self._bytes = num_bytes
        self._rows: list[float] = []
        self._waits: list[float] = []

    def arrived(self, helper: int, helpers_step: int, worker: int, step: int, start: float, end: float) -> None:
        """Adds a sum for a worker's step, sent from `start` to `end` during this step of the helper's own."""
        self._rows += (helper, helpers_step, worker, step, start, end)

    def awaited(self, worker: int, step: int, start: float, end: float) -> None:
        """A worker had nothing to do in its step from `start` until the last sum left its helper, at `end`."""
        self._waits += (worker, step, start, end)

    def tell(self, builder: TraceBuilder, workers: int) -> None:
        """Writes the rows of the worker's waits, the helpers' sends, the worker's receives and the transfers."""
        worker, step, start, end = np.array(self._waits, dtype=np.float64).reshape(-1, 4).T
        builder.extend(
            "spans", worker=worker, kind=SpanKind.WAIT, step=step, start_seconds=start, end_seconds=end, bytes=0.0,
            label="",
        )  # fmt: skip
        helper, helpers_step, worker, step, start, end = np.array(self._rows, dtype=np.float64).reshape(-1, 6).T
        for who, whose_step, kind, way, other in (
            (helper, helpers_step, SpanKind.SEND, "to", worker),
            (worker, step, SpanKind.RECEIVE, "from", helper),
        ):
            builder.extend(
                "spans", worker=who, kind=kind, step=whose_step, start_seconds=start, end_seconds=end,
                bytes=self._bytes,
                label=Texts(other.astype(np.int32), [f"{way} worker {number}" for number in range(workers)]),
            )  # fmt: skip
        builder.extend(
            "transfers", source=helper, target=worker, bytes=self._bytes, start_seconds=start, end_seconds=end,
            chunk=0, collective=NO_COLLECTIVE,
        )  # fmt: skip


def by_ranges(whole: Contributions, done: Integers | Sequence[Range]) -> Contributions:
    """Cuts each row of a whole step into the ranges of items that one worker did on one version.

    done: in any order; adjacent ranges of one worker on one version become one row.
    """
    ranges = np.array(done, dtype=np.int64).reshape(-1, WIDTH)
    ranges = ranges[np.lexsort(ranges[:, 2::-1].T)]
    begins = np.ones(len(ranges), dtype=bool)  # False: the range continues the range before
    begins[1:] = (np.diff(ranges[:, [0, 1, 4, 5]], axis=0) != 0).any(axis=1)
    ranges[begins, 3] = np.add.reduceat(ranges[:, 3], np.flatnonzero(begins)) if len(ranges) else 0
    worker, step, first_item, items, _, read_version = ranges[begins].T

    steps = int(max(step.max(initial=0), whole.step.max(initial=0))) + 1
    key, wanted = worker * steps + step, whole.worker.astype(np.int64) * steps + whole.step
    first = np.searchsorted(key, wanted)
    count = np.searchsorted(key, wanted, side="right") - first
    rows = np.repeat(np.arange(len(whole)), count)
    part = np.repeat(first, count) + np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return Contributions.of_columns(
        {name: column[rows] for name, column in whole.columns().items()}
        | {"read_version": read_version[part], "first_item": first_item[part], "items": items[part]}
    )
