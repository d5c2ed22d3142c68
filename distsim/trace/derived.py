"""Transfers that follow from a few numbers: those of collectives among workers.

A trace keeps the links, the sizes and the moments at which workers joined each call. The rows of the table are
computed when a caller reads them, for the whole run or for a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Flags, Floats, Indices, Integers
from distsim.cluster import Cluster, LinkName
from distsim.collective_times.all_reduce import AllReduce
from distsim.collective_times.call_site import CallSite, calls_of
from distsim.collectives import COLLECTIVES
from distsim.communication import Communication
from distsim.groups import ALL_REDUCE, GroupExchange, Groups
from distsim.trace.tables import Transfers, blank_columns
from distsim.trace_size import check_rows, largest_rows

LEAST_ROWS_BY_CALL = 10**7  # of whole updates; fewer rows are computed at once
MOST_BUNDLES = 2 * 10**6
HALVINGS = 50
MARGIN = 0.8  # of the rows of a part that fits, as `begun_since` is not exact
ROUNDING = 1e-9  # a share of the time: the end of a call, and of its last transfer, are rounded in different ways


def latest(count: Callable[[float], float], start: float, end: float, most: float) -> float:
    """The latest moment from `start` to `end` at which a count that grows with time is at most `most`.

    >>> round(latest(lambda seconds: 10.0 * seconds, 0.0, 8.0, 25.0), 6)
    2.5
    """
    if count(end) <= most:
        return end
    for _ in range(HALVINGS):
        middle = (start + end) / 2
        start, end = (middle, end) if count(middle) <= most else (start, middle)
    return start


@dataclass(frozen=True, eq=False)
class CollectiveTransfers:
    """The transfers of a run's all-reduces, or of other collectives, call by call.

    cluster, communication: the tables of the run's scenario. sizes: bytes of each collective of an update. arrivals:
    the seconds at which workers join, shape (updates, collectives, workers). exchanges: of each collective of an
    update, what it is and who joins it; by default all are all-reduces of all workers.
    """

    cluster: Cluster
    communication: Communication
    sizes: tuple[float, ...]
    arrivals: Floats
    exchanges: tuple[GroupExchange, ...] = ()

    @cached_property
    def all_reduces(self) -> list[AllReduce]:
        """Those of one update."""
        return calls_of(self.cluster, self.communication, self._exchanges, self.sizes, len(self.arrivals))

    @property
    def _exchanges(self) -> tuple[GroupExchange, ...]:
        return self.exchanges or (ALL_REDUCE,) * len(self.sizes)

    @property
    def calls(self) -> int:
        """The calls of the run."""
        return int(np.prod(self.arrivals.shape[:2]))

    def __len__(self) -> int:
        return len(self.arrivals) * sum(one.rows for one in self.all_reduces)

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All rows. Raises InputError where they fit no memory."""
        check_rows("transfers of the trace", len(self), 0.0, partial(self._end_of, 0.0))
        return self._rows(slice(None))

    def between(self, start_seconds: float, end_seconds: float) -> Transfers:
        """The transfers under way at some moment between the two, from the calls under way then.

        Raises InputError where they fit no memory.
        """
        under_way = self._under_way(start_seconds, end_seconds)
        of_updates = under_way.any(axis=1)
        if of_updates.sum() * len(self) <= LEAST_ROWS_BY_CALL * len(self.arrivals):
            found = Transfers(**self._rows(np.flatnonzero(of_updates)))
            return found.where((found.start_seconds < end_seconds) & (found.end_seconds > start_seconds))
        what, end_of = "transfers between the two times", partial(self._end_of, start_seconds)
        estimate = round(self.begun_since(start_seconds)(end_seconds))
        if MARGIN * estimate > largest_rows():  # otherwise the rows are counted
            check_rows(what, estimate, start_seconds, end_of)
        parts, rows = [Transfers.empty()], 0
        for update, number in np.argwhere(under_way).tolist():
            call = update * len(self.all_reduces) + number
            arrivals = self.arrivals[update, number]
            for source, target, chunk, num_bytes, start, end in self.all_reduces[number].between(
                arrivals, start_seconds, end_seconds
            ):
                rows += len(source)
                check_rows(what, rows, start_seconds, end_of)
                parts.append(Transfers(source, target, num_bytes, start, end, chunk, np.full(len(source), call)))
        columns = [part.columns() for part in parts]
        return Transfers(**{name: np.concatenate([one[name] for one in columns]) for name in Transfers.dtypes})

    def _under_way(self, start_seconds: float, end_seconds: float) -> Flags:
        """For each call, (updates, all-reduces), whether it can be under way at some moment between the two."""
        first = self.arrivals.min(axis=2)
        last = np.stack([one.ends(self.arrivals[:, n]).max(axis=-1) for n, one in enumerate(self.all_reduces)], axis=1)
        return np.asarray((first < end_seconds) & (last * (1.0 + ROUNDING) > start_seconds))

    def bundled(self, most: int) -> tuple[Transfers, Integers]:
        """About `most` rows, or as many as the schedule allows, that stand for all transfers.

        A row stands for transfers that follow each other from one worker to another: it has their bytes, the start of
        the first and the end of the last. The second result is the number of transfers in each row.
        """
        parts, counts = [Transfers.empty()], [np.empty(0, np.int64)]
        each = most // max(self.arrivals.size, 1)
        for number, one in enumerate(self.all_reduces):
            for source, target, num_bytes, count, start, end in one.bundles(self.arrivals[:, number], each):
                call = np.arange(len(start)) * len(self.all_reduces) + number
                columns = (source, target, num_bytes, start, end, 0, call[:, None])
                parts.append(Transfers(*(np.broadcast_to(column, start.shape).ravel() for column in columns)))
                counts.append(np.full(start.size, count))
        columns_of = [part.columns() for part in parts]
        joined = {name: np.concatenate([one[name] for one in columns_of]) for name in Transfers.dtypes}
        return Transfers(**joined), np.concatenate(counts)

    def begun_since(self, start_seconds: float) -> Callable[[float], float]:
        """A function of a moment: about how many transfers begin between `start_seconds` and then."""
        bundles, counts = self.bundled(MOST_BUNDLES)
        chosen = bundles.end_seconds > start_seconds
        bundles, counts = bundles.where(chosen), counts[chosen]
        length = np.maximum(bundles.end_seconds - bundles.start_seconds, 1e-300)

        def begun(seconds: float) -> float:
            return float(counts @ np.clip((seconds - bundles.start_seconds) / length, 0.0, 1.0))

        before = begun(start_seconds)
        return lambda seconds: begun(seconds) - before

    def _end_of(self, start_seconds: float, rows: int) -> float:
        last = float(self.arrivals.max(initial=0.0)) + 1.0
        return latest(self.begun_since(start_seconds), start_seconds, last, MARGIN * rows)

    def carried(self) -> tuple[Indices, Indices, Floats]:
        """The pairs of workers between which bytes travel, source and target, and the bytes of the whole run."""
        parts = [one.carried() for one in self.all_reduces] or [(np.empty(0, np.int32),) * 2 + (np.empty(0),)]
        source, target, num_bytes = (np.concatenate(column) for column in zip(*parts, strict=True))
        return source, target, num_bytes * len(self.arrivals)

    def by_link(self) -> dict[LinkName, float]:
        """The bytes that each link carried in the whole run; links that carried nothing are left out."""
        source, target, num_bytes = self.carried()
        found = np.zeros(len(self.cluster.link_capacities))
        for links in self.cluster.route_numbers(source, target)[:2]:
            found += np.bincount(links, num_bytes, len(found))
        return {self.cluster.link_name(link): float(found[link]) for link in np.flatnonzero(found).tolist()}

    def stored(self) -> tuple[dict[str, Any], Floats]:
        """What a file keeps: plain values for JSON, and the arrivals."""
        cluster, communication = (
            table.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
            for table in (self.cluster, self.communication)
        )
        facts = {"cluster": cluster, "communication": communication, "sizes": list(self.sizes)}
        if self.exchanges:
            facts["exchanges"] = [one.kind for one in self.exchanges]
        if any(one.groups for one in self.exchanges):
            facts["groups"] = [one.groups and [one.groups.size, one.groups.stride] for one in self.exchanges]
        return facts, self.arrivals

    @classmethod
    def of_stored(cls, facts: Any, arrivals: Floats) -> CollectiveTransfers:
        """The transfers whose `stored` gave these. Raises ValueError where the two do not fit together."""
        cluster = Cluster.model_validate(facts["cluster"])
        communication = Communication.model_validate(facts["communication"])
        sizes, kinds = tuple(map(float, facts["sizes"])), facts.get("exchanges", ())
        groups = [one and Groups(*one) for one in facts.get("groups", [None] * len(kinds))]
        exchanges = tuple(GroupExchange(*one) for one in zip(kinds, groups, strict=True))
        shape = (len(sizes), cluster.workers)
        if arrivals.dtype != np.float64 or arrivals.ndim != 3 or arrivals.shape[1:] != shape:
            raise ValueError(f"its arrivals have the shape {arrivals.shape}, and {shape} follows from its cluster")
        if not (np.isfinite(arrivals).all() and (arrivals >= 0.0).all() and min(sizes, default=0.0) >= 0.0):
            raise ValueError("its arrivals are no times")
        if exchanges and (len(exchanges) != len(sizes) or not set(kinds) <= COLLECTIVES.keys() | {"all_reduce"}):
            raise ValueError("its exchanges do not fit its sizes")
        if any(one and (min(one.size, one.stride) < 1 or cluster.workers % (one.size * one.stride)) for one in groups):
            raise ValueError(f"its groups do not divide {cluster.workers} workers")
        for exchange in set(exchanges) or {ALL_REDUCE}:
            if CallSite.of(cluster, communication, exchange).form not in ("rings", "tree", "sequential"):
                raise ValueError(f"transfers of kind {communication.kind!r} do not follow from arrivals")
        return cls(cluster, communication, sizes, arrivals, exchanges)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cluster, self.communication, self.sizes, self.arrivals, self.exchanges)

    def _rows(self, chosen: slice | NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """The rows of these updates."""
        arrivals, number_of = self.arrivals[chosen], np.arange(len(self.arrivals))[chosen]
        updates, count, _ = arrivals.shape
        ends = list(accumulate((one.rows for one in self.all_reduces), initial=0))
        columns = blank_columns(Transfers.dtypes, updates * ends[-1])
        by_update = {name: column.reshape(updates, ends[-1]) for name, column in columns.items()}
        for number, (all_reduce, first, end) in enumerate(zip(self.all_reduces, ends, ends[1:], strict=False)):
            own = {name: column[:, first:end] for name, column in by_update.items()}
            all_reduce.transfers(arrivals[:, number], own["start_seconds"], own["end_seconds"])
            for name, column in zip(("source", "target", "chunk", "bytes"), all_reduce.columns(), strict=True):
                own[name][:] = column
            own["collective"][:] = (number_of * count + number)[:, None]
        return columns
