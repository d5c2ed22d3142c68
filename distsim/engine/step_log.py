"""The steps of workers while the loop runs. Each step is a row; the rows of finished steps are packed into columns.

A row is a plain list, because nothing in Python is faster to write to. Constants name the places of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from distsim.engine.steps import Steps

Row = list[Any]  # in the order of the columns of `Steps`
WORKER, STEP, READ_VERSION, START, READY, BEGAN, ARRIVED, OUTCOME, ANSWERED, PULLED, CUT = range(11)
WIDTH = 11
NAN = math.nan  # an event that has not happened
MANY = 4096 * WIDTH  # numbers; as Python objects they take four times the memory of a column


class StepLog:
    """The finished steps, in the order in which they ended.

    numbers: the rows, one after the other. The loop appends rows and calls `pack` when there are `MANY` numbers.
    expected: about how many steps there will be.

    >>> log = StepLog(expected=1)
    >>> log.numbers += [3, 0, 0, 0.0, 1.0, 1.0, 1.5, 1, 1.5, 2.0, NAN]
    >>> going_on = [3, 1, 1, 2.0, 3.5, NAN, NAN, NAN, NAN, NAN, NAN]
    >>> log.steps([going_on], updates=[1.5]).ready
    array([1. , 3.5])
    """

    def __init__(self, expected: int) -> None:
        self.numbers: list[float] = []
        self.packed = 0
        self.columns = np.empty((WIDTH, expected))

    def pack(self) -> None:
        """Moves the rows so far into the columns."""
        rows = np.fromiter(self.numbers, np.float64, len(self.numbers)).reshape(-1, WIDTH)
        self.numbers.clear()
        packed = self.packed + len(rows)
        while packed > self.columns.shape[1]:
            self.columns = np.concatenate([self.columns, np.empty_like(self.columns)], axis=1)
        self.columns[:, self.packed : packed] = rows.T
        self.packed = packed

    def steps(self, going_on: Iterable[Row], updates: Sequence[float]) -> Steps:
        """All steps. Unfinished steps come last: first those whose gradient has arrived, then the others."""
        for row in sorted(going_on, key=lambda row: (math.isnan(row[PULLED]), math.isnan(row[ARRIVED]))):
            self.numbers += row
        self.pack()
        worker, step, read_version, *times = self.columns[:, : self.packed]
        start, ready, began, arrived, outcome, answered, pulled, cut = times
        return Steps(
            worker.astype(np.int32), step.astype(np.int64), read_version.astype(np.int64),
            start, ready, began, arrived, outcome, answered, pulled, cut, updates=np.array(updates, np.float64),
        )  # fmt: skip
