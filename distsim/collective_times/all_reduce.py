"""An all-reduce of a given size on given links: when its workers have the sum, and when its transfers start and end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from distsim.arrays import Floats, Indices

Part = tuple[Indices, Indices, Indices, Floats, Floats, Floats]
Bundle = tuple[Indices, Indices, Floats, int, Floats, Floats]


class AllReduce(ABC):
    """A run may call it any number of times.

    rows: the number of one call's transfers. after: the seconds until each worker has the sum, from a common moment,
    shape (workers,); None where the seconds depend on which worker joins last.
    """

    rows: int
    after: Floats | None

    @abstractmethod
    def columns(self) -> tuple[Indices, Indices, Indices, Floats]:
        """Source, target, first chunk and bytes of one call's transfers, each of shape (rows,)."""

    @abstractmethod
    def ends(self, arrivals: Floats) -> Floats:
        """The times when workers that join at `arrivals` have the sum; both of shape (…, workers)."""

    @abstractmethod
    def transfers(self, arrivals: Floats, starts: Floats, ends: Floats) -> None:
        """Fills in transfers' `starts` and `ends`, (calls, rows), for joins at `arrivals`, (calls, workers)."""

    def between(self, arrivals: Floats, start: float, end: float) -> Iterator[Part]:
        """One call's transfers that are under way between two times, part by part, for joins at `arrivals`, (workers,).

        A part is their `columns`, their starts and their ends.
        """
        starts, ends = np.empty((2, 1, self.rows))
        self.transfers(arrivals[None], starts, ends)
        found = np.flatnonzero((starts[0] < end) & (ends[0] > start))
        source, target, chunk, num_bytes = self.columns()
        yield source[found], target[found], chunk[found], num_bytes[found], starts[0, found], ends[0, found]

    def bundles(self, arrivals: Floats, most: int) -> Iterator[Bundle]:  # noqa: ARG002 - here each transfer is its own
        """Transfers that follow each other from one worker to another, as one, for joins `arrivals`, (calls, workers).

        Yields sources, targets, bytes and number of a bundle's transfers, the start of the first and the end of the
        last, both of shape (calls, sources). most: bundles of a worker in a call, where the schedule allows so few.
        """
        starts, ends = np.empty((2, len(arrivals), self.rows))
        self.transfers(arrivals, starts, ends)
        source, target, _, num_bytes = self.columns()
        yield source, target, num_bytes, 1, starts, ends

    def carried(self) -> tuple[Indices, Indices, Floats]:
        """The pairs of workers between which bytes travel, source and target, and the bytes of one call."""
        source, target, _, num_bytes = self.columns()
        most = int(target.max(initial=0)) + 1
        pairs, of_pair = np.unique(source.astype(np.int64) * most + target, return_inverse=True)
        together = np.zeros(len(pairs))
        np.add.at(together, of_pair, num_bytes)
        return (pairs // most).astype(np.int32), (pairs % most).astype(np.int32), together
