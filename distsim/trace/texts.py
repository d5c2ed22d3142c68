"""A column with few different texts: each row keeps the number of its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from distsim.trace.tables import Table


class Texts:
    """The texts of a column's rows, as numbers of entries in a short list.

    In a numpy array of texts each row takes four bytes for each character of the longest text, and millions of rows
    may hold "from worker 12". Here a row takes four bytes.

    >>> column = Texts(np.array([1, 0, 1]), ["", "cancelled"])
    >>> np.asarray(column).tolist(), np.asarray(column[:2]).tolist()
    (['cancelled', '', 'cancelled'], ['cancelled', ''])
    """

    __slots__ = ("numbers", "texts")

    def __init__(self, numbers: NDArray[np.integer[Any]], texts: Sequence[str]) -> None:
        self.numbers = numbers
        self.texts = texts

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Texts:
        return Texts(self.numbers[rows], self.texts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.str_]:
        """The texts as a numpy array, no wider than the longest text in use."""
        used = np.flatnonzero(np.bincount(self.numbers, minlength=1))
        width = max([1, *(len(self.texts[number]) for number in used.tolist())])
        written: NDArray[np.str_] = np.array(self.texts, dtype=f"U{width}")[self.numbers]
        return written


def joined(parts: Sequence[str | Texts | NDArray[np.str_]], counts: Sequence[int]) -> Texts | NDArray[np.str_]:
    """One column made of several parts. A part may be one text for all its rows. counts: the rows of each part."""
    few_texts = [part for part in parts if isinstance(part, str | Texts)]
    if len(few_texts) < len(parts):
        return np.concatenate([np.broadcast_to(part, count) for part, count in zip(parts, counts, strict=True)])
    number: dict[str, int] = {}
    most = sum(1 if isinstance(part, str) else len(part.texts) for part in few_texts)
    column = np.empty(sum(counts), np.min_scalar_type(most))
    for place, part in zip(np.split(column, np.cumsum(counts)[:-1]), few_texts, strict=True):
        few = Texts(np.zeros(1, np.int32), [part]) if isinstance(part, str) else part
        place[:] = np.array([number.setdefault(text, len(number)) for text in few.texts])[few.numbers]
    return Texts(column, list(number))


class TextColumn:
    """A table's column of texts. Readers see a numpy array, which the first read creates."""

    def __set_name__(self, table: type[Table], name: str) -> None:
        self.name = name

    def __get__(self, table: Table | None, kind: type[Table]) -> NDArray[np.str_]:
        if table is None:
            raise AttributeError(f"{kind.__name__}.{self.name} has no default")  # dataclass needs this error
        if self.name not in table.__dict__:
            raise AttributeError(f"{kind.__name__}.{self.name} is not there yet")  # then the table computes its columns
        column: Texts | NDArray[np.str_] = table.__dict__[self.name]
        if isinstance(column, Texts):
            column = table.__dict__[self.name] = np.asarray(column)
        return column

    def __set__(self, table: Table, column: Texts | NDArray[np.str_]) -> None:
        table.__dict__[self.name] = column
