"""Transfers that follow from a few numbers: those of all-reduces among workers.

A trace keeps the links, the sizes and the moments at which workers joined each call. The rows of the table are
computed when a caller reads them, for the whole run or for a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Floats
from distsim.cluster import Cluster, LinkName
from distsim.collective_times.all_reduce import AllReduce
from distsim.collective_times.call_site import CallSite
from distsim.communication import Communication
from distsim.trace.tables import Transfers, blank_columns


@dataclass(frozen=True, eq=False)
class AllReduceTransfers:
    """The transfers of a run's all-reduces, call by call.

    cluster, communication: the tables of the run's scenario. sizes: bytes of each all-reduce of an update. arrivals:
    the seconds at which workers join, shape (updates, all-reduces, workers).
    """

    cluster: Cluster
    communication: Communication
    sizes: tuple[float, ...]
    arrivals: Floats

    @cached_property
    def all_reduces(self) -> list[AllReduce]:
        """Those of one update."""
        return CallSite.of(self.cluster, self.communication).all_reduces(self.sizes, len(self.arrivals))

    @property
    def calls(self) -> int:
        """The calls of the run."""
        return int(np.prod(self.arrivals.shape[:2]))

    def __len__(self) -> int:
        return self.calls * self.all_reduces[0].rows if self.all_reduces else 0

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All rows."""
        return self._rows(slice(None))

    def between(self, start_seconds: float, end_seconds: float) -> Transfers:
        """The transfers under way at some moment between the two, from the calls under way then."""
        first = self.arrivals.min(axis=2)
        last = np.stack([one.ends(self.arrivals[:, n]).max(axis=-1) for n, one in enumerate(self.all_reduces)], axis=1)
        under_way = ((first < end_seconds) & (last > start_seconds)).any(axis=1)
        found = Transfers(**self._rows(np.flatnonzero(under_way)))
        return found.where((found.start_seconds < end_seconds) & (found.end_seconds > start_seconds))

    def by_link(self) -> dict[LinkName, float]:
        """The bytes that each link carried in the whole run; links that carried nothing are left out."""
        found = np.zeros(len(self.cluster.link_capacities))
        for one in self.all_reduces:
            source, target, num_bytes = one.carried()
            for links in self.cluster.route_numbers(source, target)[:2]:
                found += np.bincount(links, num_bytes * len(self.arrivals), len(found))
        return {self.cluster.link_name(link): float(found[link]) for link in np.flatnonzero(found).tolist()}

    def stored(self) -> tuple[dict[str, Any], Floats]:
        """What a file keeps: plain values for JSON, and the arrivals."""
        cluster, communication = (
            table.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
            for table in (self.cluster, self.communication)
        )
        return {"cluster": cluster, "communication": communication, "sizes": list(self.sizes)}, self.arrivals

    @classmethod
    def of_stored(cls, facts: Any, arrivals: Floats) -> AllReduceTransfers:
        """The transfers whose `stored` gave these. Raises ValueError where the two do not fit together."""
        cluster = Cluster.model_validate(facts["cluster"])
        communication = Communication.model_validate(facts["communication"])
        sizes = tuple(map(float, facts["sizes"]))
        shape = (len(sizes), cluster.workers)
        if arrivals.dtype != np.float64 or arrivals.ndim != 3 or arrivals.shape[1:] != shape:
            raise ValueError(f"its arrivals have the shape {arrivals.shape}, and {shape} follows from its cluster")
        if not (np.isfinite(arrivals).all() and (arrivals >= 0.0).all() and min(sizes, default=0.0) >= 0.0):
            raise ValueError("its arrivals are no times")
        if CallSite.of(cluster, communication).form not in ("rings", "tree", "sequential"):
            raise ValueError(f"transfers of kind {communication.kind!r} do not follow from arrivals")
        return cls(cluster, communication, sizes, arrivals)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cluster, self.communication, self.sizes, self.arrivals)

    def _rows(self, chosen: slice | NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """The rows of these updates."""
        arrivals, number_of = self.arrivals[chosen], np.arange(len(self.arrivals))[chosen]
        one, (updates, count, _) = self.all_reduces[0], arrivals.shape
        shape = (updates, count, one.rows)
        columns = blank_columns(Transfers.dtypes, math.prod(shape))
        by_call = {name: column.reshape(shape) for name, column in columns.items()}
        start, end = by_call["start_seconds"], by_call["end_seconds"]
        by_call["source"][:], by_call["target"][:], by_call["chunk"][:], _ = one.columns()
        for number, all_reduce in enumerate(self.all_reduces):
            all_reduce.transfers(arrivals[:, number], start[:, number], end[:, number])
            by_call["bytes"][:, number] = all_reduce.columns()[3]
        by_call["collective"][:] = (number_of[:, None] * count + np.arange(count))[:, :, None]
        return columns
