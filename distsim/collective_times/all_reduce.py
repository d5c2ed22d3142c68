"""An all-reduce of a given size on given links: when its workers have the sum, and when its transfers start and end."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from distsim.arrays import Floats, Indices


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

    def carried(self) -> tuple[Indices, Indices, Floats]:
        """The pairs of workers between which bytes travel, source and target, and the bytes of one call."""
        source, target, _, num_bytes = self.columns()
        most = int(target.max(initial=0)) + 1
        pairs, of_pair = np.unique(source.astype(np.int64) * most + target, return_inverse=True)
        together = np.zeros(len(pairs))
        np.add.at(together, of_pair, num_bytes)
        return (pairs // most).astype(np.int32), (pairs % most).astype(np.int32), together
