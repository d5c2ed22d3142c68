"""The binary tree: sums go up to rank 0, and the result comes down. A rank has at most two children.

Two children that send at once share their parent's down-link, and a parent sends to both children at once. So the time
up to rank 0 is not a maximum of sums. But every other rank has the result a fixed time after rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Floats, Indices
from distsim.cluster import Cluster
from distsim.collective_times.all_reduce import AllReduce


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
        self.rows = len(self.source)
        self.began, self.got, self.ended = self._down()
        self.after = self.ended

    def columns(self) -> tuple[Indices, Indices, Indices, Floats]:
        return self.source, self.target, np.zeros(self.rows, dtype=np.int32), np.full(self.rows, self.num_bytes)

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


def two_ends(joined: Floats, limits: Floats, capacity: Floats, num_bytes: float) -> Floats:
    """The end of each transfer in pairs that have a link each: shape (…, pairs, 2), as `joined`.

    limits: bytes/s of each transfer when it is alone, shape (pairs, 2). capacity: bytes/s of the links, (pairs,).

    >>> two_ends(np.array([[0.0, 1.0], [0.0, 5.0]]), np.full((2, 2), 10.0), np.full(2, 10.0), 20.0).tolist()
    [[3.0, 4.0], [2.0, 7.0]]
    """
    of_link, of_other = capacity[:, None], limits[:, ::-1]
    alone = np.minimum(limits, of_link)
    shared = np.minimum(limits, np.maximum(of_link / 2, of_link - of_other))
    before = np.maximum(joined[..., ::-1] - joined, 0.0)  # seconds until the other transfer joins
    left = np.maximum(num_bytes - before * alone, 0.0)
    until_one_ends = (left / shared).min(axis=-1, keepdims=True)
    ends = joined.max(axis=-1, keepdims=True) + until_one_ends + np.maximum(left - shared * until_one_ends, 0.0) / alone
    return np.asarray(np.where(left > 0.0, ends, joined + num_bytes / alone))
