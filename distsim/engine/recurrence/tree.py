"""The binary tree: sums go up to rank 0, and the result comes down. A rank has at most two children.

Two children that send at once share their parent's down-link, and a parent sends to both children at once. So the time
up to rank 0 is not a maximum of sums. But every other rank has the result a fixed time after rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Floats
from distsim.cluster import Cluster
from distsim.engine.recurrence.all_reduce_sequence import AllReduce
from distsim.engine.recurrence.sharing import two_ends


def families(ranks: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Parents of one depth with equally many children, (parents,), and their children, (parents, children); top first.

    >>> [(parents.tolist(), children.tolist()) for parents, children in families(6)]
    [([0], [[1, 2]]), ([1], [[3, 4]]), ([2], [[5]])]
    """
    first = 0
    while 2 * first + 1 < ranks:
        of_depth = np.arange(first, min(2 * first + 1, ranks))
        for count in (2, 1):
            parents = of_depth[np.clip(ranks - (2 * of_depth + 1), 0, 2) == count]
            if len(parents):
                yield parents, 2 * parents[:, None] + 1 + np.arange(count)
        first = 2 * first + 1


class Tree(AllReduce):
    """The all-reduce `collectives.tree` where each worker has its own NIC. Transfers are in the order of children."""

    def __init__(self, cluster: Cluster, num_bytes: float, *, eager: bool) -> None:
        ranks = np.arange(cluster.workers, dtype=np.int32)
        children, parents = ranks[1:], (ranks[1:] - 1) // 2
        self.latency = cluster.latency_seconds
        self.num_bytes = num_bytes
        self.eager = eager
        self.ups = np.array([cluster.up(rank) for rank in range(cluster.workers)])
        self.downs = np.array([cluster.down(rank) for rank in range(cluster.workers)])
        self.families = list(families(cluster.workers))
        self.source, self.target = np.concatenate([children, parents]), np.concatenate([parents, children])
        self.chunk = np.zeros(len(self.source), dtype=np.int32)
        self.bytes = np.full(len(self.source), num_bytes)
        self.began, self.got, self.ended = self._down()
        self.after = self.ended

    def ends(self, arrivals: Floats) -> Floats:
        return self._up(arrivals)[2][..., :1] + self.ended

    def transfers(self, arrivals: Floats, starts: Floats, ends: Floats) -> None:
        count = arrivals.shape[1] - 1
        began, arrived, summed = self._up(arrivals)
        starts[:, :count], ends[:, :count] = began[:, 1:], arrived[:, 1:]
        starts[:, count:], ends[:, count:] = summed[:, :1] + self.began[1:], summed[:, :1] + self.got[1:]

    def _up(self, arrivals: Floats) -> tuple[Floats, Floats, Floats]:
        """By rank: when it sends to its parent, when this arrives, and when the rank has the sum of all ranks below."""
        began, arrived, summed = np.empty_like(arrivals), np.empty_like(arrivals), arrivals.copy()
        for parents, children in reversed(self.families):
            ready = summed[..., children]
            if not self.eager:
                ready = np.maximum(ready, arrivals[..., parents, None])
            began[..., children] = ready
            there = self._shared(ready, self.ups[children], self.downs[parents])
            arrived[..., children] = there
            summed[..., parents] = np.maximum(summed[..., parents], there.max(axis=-1))
        return began, arrived, summed

    def _down(self) -> tuple[Floats, Floats, Floats]:
        """By rank, in seconds after rank 0 has the sum: when its parent sends, when the sum arrives, when it ends."""
        began, got = np.zeros(len(self.ups)), np.zeros(len(self.ups))
        after = got.copy()
        for parents, children in self.families:
            began[children] = got[parents, None]
            got[children] = self._shared(began[children], self.downs[children], self.ups[parents])
            after[parents] = got[children].max(axis=-1)
            after[children] = got[children]
        return began, got, after

    def _shared(self, begins: Floats, limits: Floats, capacities: Floats) -> Floats:
        """The ends of transfers, (…, parents, children), that share their parent's link."""
        joined = begins + self.latency
        if limits.shape[1] == 2:
            return two_ends(joined, limits, capacities, self.num_bytes)
        return np.asarray(joined + self.num_bytes / np.minimum(limits, capacities[:, None]))
