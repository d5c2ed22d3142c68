"""Collects the rows of a trace. The simulator and the real runs both write their traces with `TraceBuilder`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distsim.arrays import Flags, Indices, Integers
from distsim.trace.tables import NO_COLLECTIVE, NO_SERVER, NO_VERSION, SpanKind, Table
from distsim.trace.texts import Texts, joined
from distsim.trace.trace import TABLES, Trace

Numbers = float | NDArray[Any]  # one number for all rows, or a column


class Columns:
    """The rows of one table before it is built: single rows in one flat array of numbers, and blocks of columns.

    The text of a single row is stored as the number of its entry among the texts so far.
    """

    def __init__(self, table: type[Table]) -> None:
        self.table = table
        self.rows = array("d")
        self.blocks: list[Mapping[str, ArrayLike | Texts]] = []
        self.texts: dict[str, int] = {}

    def text(self, text: str) -> int:
        """The number that stands for `text`."""
        return self.texts.setdefault(text, len(self.texts))

    def close_block(self) -> None:
        """Turns the single rows so far into a block, so that rows and blocks keep their order."""
        if not self.rows:
            return
        names = list(self.table.dtypes)
        matrix = np.frombuffer(self.rows, dtype=np.float64).reshape(-1, len(names))
        block: dict[str, ArrayLike | Texts] = {}
        for name, column in zip(names, matrix.T, strict=True):
            dtype = self.table.dtypes[name]
            block[name] = Texts(column.astype(np.int32), list(self.texts)) if dtype is str else column.astype(dtype)
        self.blocks.append(block)
        self.rows = array("d")

    def build(self) -> Table:
        """The table of all rows so far."""
        self.close_block()
        if not self.blocks:
            return self.table.empty()
        counts = [
            next(len(column) for column in block.values() if not np.isscalar(column))  # type: ignore[arg-type]
            for block in self.blocks
        ]
        return self.table.of_columns(
            {name: self._column(name, [block[name] for block in self.blocks], counts) for name in self.table.dtypes}
        )

    def _column(self, name: str, parts: list[Any], counts: list[int]) -> Any:
        if len(parts) == 1 and not np.isscalar(parts[0]):
            return parts[0]
        dtype = self.table.dtypes[name]
        if dtype is str:
            return joined(parts, counts)
        if all(np.isscalar(part) and part == parts[0] for part in parts):
            return np.broadcast_to(np.asarray(parts[0], dtype), sum(counts))  # one number in memory, not millions
        column = np.empty(sum(counts), dtype)
        for place, part in zip(np.split(column, np.cumsum(counts)[:-1]), parts, strict=True):
            place[:] = part
        return column


class TraceBuilder:
    """Append rows, then `build`.

    >>> builder = TraceBuilder()
    >>> builder.span(0, SpanKind.COMPUTE, step=0, start_seconds=0.0, end_seconds=0.5)
    >>> builder.update(1, time_seconds=0.5)
    >>> builder.build(workers=1, servers=0, producer="simulated").total_seconds
    0.5
    """

    def __init__(self) -> None:
        self._tables = {name: Columns(table) for name, table in TABLES.items()}
        self._span_label = self._tables["spans"].text
        self._span_label("")

    def extend(self, table: str, **columns: ArrayLike | Texts) -> None:
        """Adds many rows to `table` ("spans", "updates", …): by name, a column or one value for all rows."""
        rows = self._tables[table]
        rows.close_block()
        rows.blocks.append(columns)

    def span(
        self,
        worker: int,
        kind: SpanKind,
        step: int,
        start_seconds: float,
        end_seconds: float,
        num_bytes: float = 0.0,
        label: str = "",
    ) -> None:
        """Adds one row of `Spans`."""
        label_number = self._span_label(label) if label else 0
        self._tables["spans"].rows.extend((worker, kind, step, start_seconds, end_seconds, num_bytes, label_number))

    def update(self, version: int, time_seconds: float, server: int = NO_SERVER) -> None:
        """Adds one row of `Updates`."""
        self._tables["updates"].rows.extend((version, server, time_seconds))

    def applied(
        self,
        version: int,
        worker: int,
        step: int,
        read_version: int,
        server: int = NO_SERVER,
        items: tuple[int, int] = (0, 1),
    ) -> None:
        """Adds a gradient that went into update `version`; `items` is (first, count)."""
        self._tables["contributions"].rows.extend((version, server, worker, step, read_version, *items, True, False))

    def not_applied(
        self, worker: int, step: int, read_version: int, *, cancelled: bool, server: int = NO_SERVER
    ) -> None:
        """Adds a gradient that was dropped on arrival, or cancelled earlier."""
        self._tables["contributions"].rows.extend(
            (NO_VERSION, server, worker, step, read_version, 0, 1, False, cancelled)
        )

    def transfer(
        self,
        source: int,
        target: int,
        num_bytes: float,
        start_seconds: float,
        end_seconds: float,
        chunk: int = 0,
        collective: int = NO_COLLECTIVE,
    ) -> None:
        """Adds one row of `Transfers`."""
        self._tables["transfers"].rows.extend(
            (source, target, num_bytes, start_seconds, end_seconds, chunk, collective)
        )

    def push(
        self,
        worker: Numbers,
        server: int,
        step: Numbers,
        num_bytes: float,
        start_seconds: Numbers,
        end_seconds: Numbers,
        began_seconds: Numbers | None = None,
    ) -> None:
        """Adds gradients that travel to a server: the worker's send, the server's receive, and the transfer.

        Each argument is one number, or a column with a row for each push. Pushes whose end is NaN are left out.
        began_seconds: the server starts to receive; later than start_seconds where gradients wait in a queue.
        """
        began_seconds = start_seconds if began_seconds is None else began_seconds
        worker, step, start, began, end = _arrived(end_seconds, worker, step, start_seconds, began_seconds)
        spans, label = partial(self._spans, step=step, end_seconds=end, bytes=num_bytes), _named("from", worker)
        spans(worker=worker, kind=SpanKind.SEND, start_seconds=start)
        spans(worker=server, kind=SpanKind.RECEIVE, start_seconds=began, label=label)
        self._transfers(source=worker, target=server, bytes=num_bytes, start_seconds=began, end_seconds=end)

    def pull(
        self,
        worker: Numbers,
        server: int,
        step: Numbers,
        num_bytes: float,
        asked_seconds: Numbers,
        start_seconds: Numbers,
        end_seconds: Numbers,
    ) -> None:
        """Adds parameters that travel to workers. The workers have waited for the parameters since `asked_seconds`.

        Each argument is one number, or a column with a row for each pull. A pull whose end is NaN writes only the
        wait, because a server on the worker's own host sends nothing.
        """
        waits = np.where(np.less(asked_seconds, start_seconds), start_seconds, np.nan)
        waiting, waited_step, asked, left = _arrived(waits, worker, step, asked_seconds)
        self._spans(worker=waiting, kind=SpanKind.WAIT, step=waited_step, start_seconds=asked, end_seconds=left)
        worker, step, start, end = _arrived(end_seconds, worker, step, start_seconds)
        spans = partial(self._spans, step=step, start_seconds=start, end_seconds=end, bytes=num_bytes)
        spans(worker=worker, kind=SpanKind.RECEIVE)
        spans(worker=server, kind=SpanKind.SEND, label=_named("to", worker))
        self._transfers(source=server, target=worker, bytes=num_bytes, start_seconds=start, end_seconds=end)

    def contributions(
        self,
        server: int,
        worker: Integers | Indices,
        step: Integers,
        read_version: Integers,
        version: Integers,
        cancelled: Flags | bool = False,
    ) -> None:
        """Adds gradients of whole steps; version: the update that each gradient went into, or NO_VERSION."""
        self.extend(
            "contributions", version=version, server=server, worker=worker, step=step, read_version=read_version,
            first_item=0, items=1, applied=version != NO_VERSION, cancelled=cancelled,
        )  # fmt: skip

    def _spans(self, *, bytes: float = 0.0, label: Texts | str = "", **columns: Numbers) -> None:  # noqa: A002 - a column
        self.extend("spans", **columns, bytes=bytes, label=label)

    def _transfers(self, **columns: Numbers) -> None:
        self.extend("transfers", **columns, chunk=0, collective=NO_COLLECTIVE)

    def build(self, workers: int, servers: int, producer: str, **metadata: Any) -> Trace:
        """The trace of all rows so far."""
        tables: dict[str, Any] = {name: rows.build() for name, rows in self._tables.items()}
        return Trace(metadata={"producer": producer, "workers": workers, "servers": servers, **metadata}, **tables)


def _arrived(end_seconds: Numbers, *columns: Numbers) -> list[NDArray[Any]]:
    """The rows of `columns`, and at last of `end_seconds`, whose end is not NaN."""
    end = np.atleast_1d(np.asarray(end_seconds))
    there = ~np.isnan(end)
    count = int(np.count_nonzero(there))
    rows = slice(count) if there[:count].all() else np.flatnonzero(there)  # the first rows need no copy
    return [np.broadcast_to(column, end.shape)[rows] for column in (*columns, end)]


def _named(direction: str, worker: NDArray[Any]) -> Texts:
    """A label for each row: "from worker 3"."""
    return Texts(worker, [f"{direction} worker {rank}" for rank in range(int(worker.max(initial=-1)) + 1)])
