"""The events that one rank saw in one scenario: rows of plain numbers, written when the run is over.

Until then a journal keeps the rows, in case the rank dies. Times are seconds of the monotonic clock, which all
processes of a host share. `merge` sets their zero. The clocks of hosts differ, so records are on rank 0's clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.runtime.recording import journal
from distsim.runtime.recording.clock_offset import NONE, Offset
from distsim.runtime.recording.journal import Journal
from distsim.runtime.recording.tally import Tally

TABLES: dict[str, tuple[str, ...]] = {
    "left": ("moment",),  # the start barrier
    # of a run with failures, by a peer or a server; update, step: how many there were
    "checkpoints": ("update", "start", "end"),
    "resumed": ("update", "step", "failed", "ready", "start"),
    # of a worker
    "computes": ("step", "read_version", "start", "end"),  # the drawn time alone
    "forwards": ("step", "start", "end"),
    "backwards": ("step", "start", "end"),
    "losses": ("step", "loss"),
    "all_reduces": ("call", "arrival", "end"),
    "computations": ("step", "number", "start", "end"),  # of the policy's program
    "exchange_work": ("call", "core_seconds"),  # of all threads of this rank
    "sends": ("call", "transfer", "posted", "end"),
    "receives": ("call", "transfer", "posted", "end"),
    # of a stage of a pipeline; backward: 1, or 0 for forward
    "passes": ("step", "micro", "backward", "start", "end"),
    "handed": ("step", "micro", "backward", "posted"),
    "taken": ("step", "micro", "backward", "turned", "end"),
    # of a worker with a server
    "pushes": ("server", "step", "read_version", "start", "end"),
    "pulls": ("server", "version", "end"),
    # of a FlexRR worker: the pieces that it did of whose step, during which own step; the sums from one worker to
    # another stand in the same order in the records of both
    "pieces": ("worker", "step", "item", "own_step", "read_version", "start", "end"),
    "sums_sent": ("worker", "own_step", "start"),
    "sums_received": ("worker", "step", "end"),
    # of a server; the messages and answers of a worker stand in the same order in the records of both
    "arrivals": ("worker", "step", "read_version", "posted", "end"),
    "answers": ("worker", "version", "asked", "start"),
    "updates": ("version", "begin", "end"),
    "applied": ("version", "worker", "step", "read_version"),
    "dropped": ("worker", "step", "read_version"),
    "cancelled": ("worker", "read_version"),
}
# Columns with moments of the machine's own clock.
MOMENTS = frozenset(
    ("moment", "start", "end", "failed", "ready", "arrival", "posted", "turned", "asked", "begin")
)  # fmt: skip
NUMBERS = {name: number for number, name in enumerate(TABLES)}
Row = tuple[float, ...]


class Recorder:
    """Collects rows. `table(name)` gives the function to call with each row; look it up before the clock starts.

    journal: keeps each row as soon as it comes.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        self.facts: dict[str, Any] = {}
        self.tally = Tally()

    def table(self, name: str) -> Callable[[Row], None]:
        """The function that appends a row to this table."""
        append, journal, number = self._rows[name].append, self._journal, NUMBERS[name]
        if journal is None:
            return append

        def keep(row: Row) -> None:
            append(row)
            journal.append(number, row)

        return keep

    def rows(self, name: str) -> list[Row]:
        """The rows of a table so far."""
        return self._rows[name]

    def save(self, folder: Path, scenario: int, rank: int, offset: Offset = NONE) -> None:
        """Writes the rank's record of scenario number `scenario`, with all moments on rank 0's clock."""
        arrays = {
            name: np.array(rows, dtype=np.float64).reshape(len(rows), len(TABLES[name])) + _shift(name, offset)
            for name, rows in self._rows.items()
        }
        facts = self.facts | {"tally": self.tally.table(), "clock": offset.table()}
        if "left_barrier" in facts:
            facts["left_barrier"] += offset.seconds
        np.savez(
            record_file(folder, scenario, rank), allow_pickle=False, facts=np.array(json.dumps(facts)), **arrays
        )  # fmt: skip


def _shift(table: str, offset: Offset) -> Floats:
    """The shift of each column of a row."""
    return np.array([offset.seconds if column in MOMENTS else 0.0 for column in TABLES[table]])


@dataclass(frozen=True)
class Record:
    """A rank's record as read back. facts: recorded beside the tables."""

    tables: dict[str, Floats]
    facts: dict[str, Any]

    def rows(self, name: str) -> list[list[float]]:
        """The rows of a table, in the order in which they were recorded."""
        rows: list[list[float]] = self.tables[name].tolist()
        return rows


def load(folder: Path, scenario: int, rank: int) -> Record:
    """Reads what `Recorder.save` wrote."""
    with np.load(record_file(folder, scenario, rank), allow_pickle=False) as arrays:
        return Record({name: arrays[name] for name in TABLES}, json.loads(str(arrays["facts"])))


def journal_of(folder: Path, scenario: int, rank: int, start: int = 0) -> Journal:
    """A new journal for the rank's rows of scenario number `scenario`. start: how often ranks had been started."""
    return Journal(_journal_file(folder, scenario, rank, start))


def recorded(folder: Path, scenario: int, rank: int, start: int = 0) -> dict[str, list[Row]]:
    """The journal's rows by table, until now or until the rank ended; all empty where the rank had not begun."""
    rows = journal.read(_journal_file(folder, scenario, rank, start))
    return {name: rows.get(number, []) for name, number in NUMBERS.items()}


def starts(folder: Path, scenario: int) -> list[int]:
    """The numbers of the starts that have left journals."""
    return sorted({int(file.name.rpartition("-")[2]) for file in folder.glob(f"journal-{scenario}-*")})


def _journal_file(folder: Path, scenario: int, rank: int, start: int) -> Path:
    return folder / f"journal-{scenario}-{rank}-{start}"


def record_file(folder: Path, scenario: int, rank: int) -> Path:
    """The file that `Recorder.save` writes."""
    return folder / f"record-{scenario}-{rank}.npz"
