"""The four tables of a trace: spans, updates, contributions, transfers. Columns are numpy arrays of one length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Flags, Floats, Indices, Integers
from distsim.trace.texts import TextColumn, Texts

if TYPE_CHECKING:
    import pandas as pd

NO_VERSION = -1  # a gradient that went into no update
NO_SERVER = -1  # an update that peers made without a server
NO_COLLECTIVE = -1  # a transfer that belongs to no collective
FOR_ANOTHER = "for worker"  # starts the label of a span in which a worker does a piece of another's step


class SpanKind(IntEnum):
    """The activity of a worker or server during a span. Files hold the numbers: never reuse a number."""

    COMPUTE = 0
    FORWARD = 1
    BACKWARD = 2
    SEND = 3
    RECEIVE = 4
    ALL_REDUCE = 5
    WAIT = 6
    APPLY = 7
    CHECKPOINT = 8
    RESTART = 9
    LOST = 10
    REDUCE_SCATTER = 11
    ALL_GATHER = 12

    @property
    def text(self) -> str:
        """The word for the kind in files and data frames."""
        return self.name.lower()

    @property
    def words(self) -> str:
        """The name of the kind in figures and sentences.

        >>> SpanKind.ALL_REDUCE.words, SpanKind.LOST.words
        ('all-reduce', 'lost work')
        """
        return "lost work" if self is SpanKind.LOST else self.text.replace("_", "-")


COMPUTE_KINDS = (SpanKind.COMPUTE, SpanKind.FORWARD, SpanKind.BACKWARD)
COMMUNICATION_KINDS = (
    SpanKind.SEND, SpanKind.RECEIVE, SpanKind.ALL_REDUCE, SpanKind.REDUCE_SCATTER, SpanKind.ALL_GATHER,
)  # fmt: skip
# The pauses of a run with failures; LOST is work that a failure undid. `step` of a pause counts a worker's pauses.
PAUSE_KINDS = (SpanKind.CHECKPOINT, SpanKind.LOST, SpanKind.RESTART)


def blank_columns(dtypes: Mapping[str, Any], rows: int) -> dict[str, NDArray[Any]]:
    """Columns of these types, to be filled.

    The columns share one block of memory, because the system may need longer for many small blocks than for the rows.
    """
    found = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
    memory = np.empty(rows * sum(dtype.itemsize for dtype in found.values()), np.uint8)
    columns: dict[str, NDArray[Any]] = dict.fromkeys(found, memory)
    first = 0
    for name, dtype in sorted(found.items(), key=lambda item: -item[1].alignment):
        columns[name] = memory[first : first + rows * dtype.itemsize].view(dtype)
        first += rows * dtype.itemsize
    return columns


class Derivation(Protocol):
    """A few numbers that the rows of a table follow from. `columns` always returns the same."""

    def __len__(self) -> int:
        """The number of rows."""

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """The columns by name. Raises InputError where they fit no memory."""


@dataclass(frozen=True)
class Table:
    """Columns of one length. Subclasses name them; `dtypes` fixes the type of each."""

    dtypes: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        lengths = set()
        for name, dtype in self.dtypes.items():
            column = self.__dict__[name]
            if isinstance(column, Texts):
                lengths.add(len(column))
                continue
            column = np.asarray(column)
            if dtype is str:
                column = column.astype(str, copy=False) if column.size else np.empty(0, dtype="U1")
            else:
                column = column.astype(dtype, copy=False)
            object.__setattr__(self, name, column)
            lengths.add(len(column))
        if len(lengths) > 1:
            raise ValueError(f"the columns of {type(self).__name__} differ in length: {sorted(lengths)}")

    def __len__(self) -> int:
        first = self.__dict__.get(next(iter(self.dtypes)))
        return len(self.__dict__["_derivation"] if first is None else first)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        return cls.of_rows(())

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[Any, ...]]) -> Self:
        """The table of these rows; each row is a tuple in the order of the fields."""
        columns = list(zip(*rows, strict=True)) or [() for _ in cls.dtypes]
        return cls(*(np.asarray(column) for column in columns))

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Self:
        """The table of these columns by name."""
        return cls(**{name: columns[name] for name in cls.dtypes})

    @classmethod
    def later(cls, derivation: Derivation) -> Self:
        """A table whose rows follow from `derivation`. They are computed when a caller first reads a column."""
        table = cls.__new__(cls)
        object.__setattr__(table, "_derivation", derivation)
        return table

    @property
    def derivation(self) -> Derivation | None:
        """What the rows follow from, in a table made by `later`."""
        found: Derivation | None = self.__dict__.get("_derivation")
        return found

    if not TYPE_CHECKING:  # a type checker must still report a column that no table has

        def __getattr__(self, name: str) -> Any:
            """A column of a table made by `later`."""
            if name in self.dtypes:
                self._work_out()
            return object.__getattribute__(self, name)

    def _work_out(self) -> None:
        """Computes the columns of a table made by `later`."""
        if next(iter(self.dtypes)) in self.__dict__ or self.derivation is None:
            return
        table = self.of_columns(self.derivation.columns())
        assert len(table) == len(self), "the number of rows that was told"
        self.__dict__.update(table.__dict__)

    def __getstate__(self) -> dict[str, Any]:
        return self.columns() if self.derivation is None else {"_derivation": self.derivation}

    def where(self, mask: Flags | NDArray[np.intp]) -> Self:
        """The rows that a boolean mask selects, or that an index array names."""
        self._work_out()
        return type(self)(*(self.__dict__[name][mask] for name in self.dtypes))

    def sorted(self) -> Self:
        """The rows in an order that depends only on their values."""
        keys = list(self.columns().values())
        return self.where(np.lexsort(keys[::-1])) if len(self) else self

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with the same columns."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Table):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self.columns().values(), other.columns().values(), strict=True))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Spans(Table):
    """The activities of each worker and server, with their times.

    worker: rank; the ranks of servers follow those of workers. kind: a `SpanKind`. step: the worker's own count of
    steps from 0; for `PAUSE_KINDS`, its count of pauses.
    start_seconds, end_seconds: on the trace's clock. bytes: the bytes carried, or 0. label: free text.
    """

    worker: Indices
    kind: NDArray[np.int8]
    step: Integers
    start_seconds: Floats
    end_seconds: Floats
    bytes: Floats
    label: NDArray[np.str_] = TextColumn()  # type: ignore[assignment]  # noqa: RUF009 - a descriptor, no default

    dtypes: ClassVar = {
        "worker": np.int32, "kind": np.int8, "step": np.int64, "start_seconds": np.float64,
        "end_seconds": np.float64, "bytes": np.float64, "label": str,
    }  # fmt: skip

    def of_kind(self, *kinds: SpanKind) -> Spans:
        """The spans of these kinds."""
        return self.where(np.isin(self.kind, kinds))

    def to_pandas(self) -> pd.DataFrame:
        """A data frame in which `kind` is a word."""
        import pandas as pd

        frame = super().to_pandas()
        return frame.assign(kind=pd.Categorical.from_codes(self.kind, pd.Index([kind.text for kind in SpanKind])))


@dataclass(frozen=True, eq=False)
class Updates(Table):
    """New versions of the parameters: version (from 1, per server), the server's rank or NO_SERVER, and the time."""

    version: Integers
    server: Indices
    time_seconds: Floats

    dtypes: ClassVar = {"version": np.int64, "server": np.int32, "time_seconds": np.float64}


@dataclass(frozen=True, eq=False)
class Contributions(Table):
    """The outcome of each gradient.

    version: the update with the gradient, or NO_VERSION. worker, step: the gradient's worker, and the worker's step.
    read_version: the parameters of the computation. first_item, items: the pieces of the step that the row covers.
    applied: whether the gradient went into an update. cancelled, if not applied: True for a gradient stopped before
    its arrival, False for one dropped on arrival. A real server's applied rows keep the order of its additions.
    """

    version: Integers
    server: Indices
    worker: Indices
    step: Integers
    read_version: Integers
    first_item: Indices
    items: Indices
    applied: Flags
    cancelled: Flags

    dtypes: ClassVar = {
        "version": np.int64, "server": np.int32, "worker": np.int32, "step": np.int64, "read_version": np.int64,
        "first_item": np.int32, "items": np.int32, "applied": np.bool_, "cancelled": np.bool_,
    }  # fmt: skip

    @property
    def staleness(self) -> Integers:
        """For each applied row, in order, the versions applied between the gradient's read and its application."""
        return self.version[self.applied] - 1 - self.read_version[self.applied]


@dataclass(frozen=True, eq=False)
class Transfers(Table):
    """Bytes from one host to another, from the moment the transfer began (latency included) to its last byte."""

    source: Indices
    target: Indices
    bytes: Floats
    start_seconds: Floats
    end_seconds: Floats
    chunk: Indices
    collective: Integers

    dtypes: ClassVar = {
        "source": np.int32, "target": np.int32, "bytes": np.float64, "start_seconds": np.float64,
        "end_seconds": np.float64, "chunk": np.int32, "collective": np.int64,
    }  # fmt: skip
