"""The record of one run: four tables and metadata, the same for simulated and measured runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from distsim.arrays import Flags
from distsim.errors import InputError
from distsim.trace.derived import CollectiveTransfers
from distsim.trace.tables import Contributions, Spans, Table, Transfers, Updates
from distsim.units import show

if TYPE_CHECKING:
    import pandas as pd

    from distsim.scenario import Scenario

TABLES: dict[str, type[Table]] = {
    "spans": Spans, "updates": Updates, "contributions": Contributions, "transfers": Transfers,
}  # fmt: skip
Producer = Literal["simulated", "measured"]


@dataclass(frozen=True, eq=False)
class Trace:
    """One run on one clock: 0 is the moment the last rank leaves the start barrier.

    The transfers of a simulated run may be a `Table.later`: millions of rows that follow from a few numbers. They are
    computed when the table is first read or compared. `transfers_between` computes a part of them.

    metadata: the scenario's table, `producer` ("simulated" or "measured"), workers and servers, versions of the
    software, and further facts about the run; values that JSON can hold.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring"))
    >>> trace.workers, len(trace.updates), trace.total_seconds == float(trace.updates.time_seconds.max())
    (4, 50, True)
    """

    spans: Spans
    updates: Updates
    contributions: Contributions
    transfers: Transfers
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def producer(self) -> Producer:
        """Whether the run was simulated or measured."""
        producer: Producer = self.metadata["producer"]
        return producer

    @property
    def workers(self) -> int:
        """The number of workers. Workers are ranks 0 to workers - 1."""
        return int(self.metadata["workers"])

    @property
    def servers(self) -> int:
        """The number of parameter servers. Servers are the ranks after the workers."""
        return int(self.metadata["servers"])

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario of the run. Raises InputError where the trace holds no scenario."""
        from distsim.scenario import Scenario

        if "scenario" not in self.metadata:
            raise InputError("the trace holds no scenario. Cure: take a trace that simulate or measure made")
        return Scenario.of(self.metadata["scenario"], source="the trace's scenario", recorded=True)

    @cached_property
    def total_seconds(self) -> float:
        """The time of the last update; 0 if the run made no update."""
        times = self.updates.time_seconds
        return float(times.max()) if len(times) else 0.0

    def transfers_between(self, start_seconds: float, end_seconds: float) -> Transfers:
        """The transfers that are under way at some moment between the two times.

        >>> import distsim
        >>> trace = distsim.simulate(distsim.example("synchronous_ring"))
        >>> len(trace.transfers_between(0.0, trace.updates.time_seconds[0])), len(trace.transfers)
        (24, 1200)
        """
        derivation = self.transfers.derivation
        if isinstance(derivation, CollectiveTransfers):
            return derivation.between(start_seconds, end_seconds)
        return self.transfers.where(_under_way(self.transfers, start_seconds, end_seconds))

    def between(self, start_seconds: float, end_seconds: float) -> Trace:
        """The part of the run between the two times, for exports of runs that are too large to export whole.

        It has the spans and transfers that are under way at some moment between the two, the updates from start_seconds
        to end_seconds with their gradients, and the other gradients of the steps that these spans are of. Times stay on
        the run's clock. `metadata["between_seconds"]` names the two times, at most from 0 to the last update, or to the
        bounds of the part that this is. Raises InputError where they bound no part.

        >>> import distsim
        >>> trace = distsim.simulate(distsim.example("backup_server"))
        >>> part = trace.between(0.0, trace.updates.time_seconds[2])
        >>> part.updates.version.tolist(), len(part.spans) < len(trace.spans)
        ([1, 2, 3], True)
        """
        if not -math.inf < start_seconds < end_seconds < math.inf:
            raise InputError.of(
                "between", (start_seconds, end_seconds), "must be two times, the earlier one first",
                "write trace.between(0.0, 1.5)",
            )  # fmt: skip
        low, high = self.bounds_seconds
        bounds = [max(float(start_seconds), low), min(float(end_seconds), high)]
        if bounds[0] >= bounds[1]:
            raise InputError.of(
                "between", (start_seconds, end_seconds), f"has nothing of the run, which is from {show(low, 'second')} "
                f"to {show(high, 'second')}", "write times within it",
            )  # fmt: skip
        spans = self.spans.where(_under_way(self.spans, start_seconds, end_seconds))
        times = self.updates.time_seconds
        updates = self.updates.where((times >= start_seconds) & (times <= end_seconds))
        gradients = self.contributions
        theirs = np.where(
            gradients.applied,
            _among(updates, gradients, "server", "version"),
            _among(spans, gradients, "worker", "step"),
        )
        return Trace(
            spans, updates, gradients.where(theirs), self.transfers_between(start_seconds, end_seconds),
            self.metadata | {"between_seconds": bounds},
        )  # fmt: skip

    @property
    def part_seconds(self) -> tuple[float, float] | None:
        """The two times that bound this part of a run; None for a whole run."""
        bounds = self.metadata.get("between_seconds")
        return None if bounds is None else (float(bounds[0]), float(bounds[1]))

    @property
    def bounds_seconds(self) -> tuple[float, float]:
        """The start and the end of what the trace tells: of the part, or 0 and the last update, or the last span."""
        return self.part_seconds or (0.0, self.total_seconds or float(self.spans.end_seconds.max(initial=0.0)))

    def check_whole(self, asked: str) -> None:
        """Raises InputError, which says what was `asked`, where this is a part of a run."""
        if self.part_seconds is not None:
            start, end = (show(seconds, "second") for seconds in self.part_seconds)
            rule = "is a part of a run, and the answer would be that of a whole run"
            raise InputError.of(asked, f"{start} to {end}", rule, "take the trace of the whole run")

    def lane(self, rank: int) -> str:
        """The name of a rank's track, the same for simulated and measured runs.

        >>> import distsim
        >>> distsim.simulate(distsim.example("backup_server")).lane(5)
        'server 5'
        """
        return f"{'worker' if rank < self.workers else 'server'} {rank}"

    def sorted(self) -> Trace:
        """The same trace with its rows in an order that depends on their values alone; for comparing engines."""
        return Trace(
            self.spans.sorted(),
            self.updates.sorted(),
            self.contributions.sorted(),
            self.transfers.sorted(),
            self.metadata,
        )

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """The four tables as data frames, by name."""
        return {name: getattr(self, name).to_pandas() for name in TABLES}

    def save(self, path: str | Path) -> None:
        """Writes the trace as `.npz` (compact), or `.json` or `.json.gz` (Chrome trace events, for Perfetto)."""
        from distsim.trace.files import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Reads a trace that `save` wrote; every number comes back bit for bit. Raises InputError."""
        from distsim.trace.files import load

        return load(Path(path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        same = all(getattr(self, name) == getattr(other, name) for name in TABLES)
        return same and self.metadata == other.metadata

    __hash__ = None  # type: ignore[assignment]


def _under_way(table: Spans | Transfers, start_seconds: float, end_seconds: float) -> Flags:
    found: Flags = (table.start_seconds < end_seconds) & (table.end_seconds > start_seconds)
    return found


def _among(those: Table, rows: Table, one: str, other: str) -> Flags:
    """For each of `rows`, whether `those` have a row with the same two values."""
    first, second = (np.concatenate([getattr(table, name) for table in (those, rows)]) for name in (one, other))
    pairs = first.astype(np.int64) * (int(second.max(initial=0)) + 2) + second
    found: Flags = np.isin(pairs[len(those) :], pairs[: len(those)])
    return found
