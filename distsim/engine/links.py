"""Links without a clock, for the loop: transfers of one size, each at most at its worker's own speed.

A push crosses its worker's up-link and the server's down-link, an answer the server's up-link and its worker's
down-link. A worker has one of each at a time, so max-min fairness is simple here: everybody gets the same share of the
server's link, except those whose own link is slower than that.

Who owns the time puts transfers that are to begin into `coming`, and asks with `end(now)` who is done. The answer also
says when to ask again: nobody is done before. Whoever begins until then may put that off, so at times nobody is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from heapq import heapify, heappop

from distsim.network import OVER

NEVER = math.inf
Ended = tuple[list[int], float]  # the workers whose transfers end now, in the order of joining; when to ask again
Course = Generator[Ended, float, None]  # generators, because their state is local and so fast to reach


class Link(ABC):
    """coming: a heap of (when they begin, a number that breaks ties, workers). alone_seconds: no transfer is faster."""

    def __init__(self, alone_seconds: float) -> None:
        self.coming: list[tuple[float, int, Sequence[int]]] = []
        self.alone_seconds = alone_seconds
        course = self._course()
        next(course)
        self.end: Callable[[float], Ended] = course.send

    def leave(self, now: float, gone: Collection[int]) -> float:
        """The transfers of these workers are aborted, or never begin; when to ask again."""
        self.end(now)
        left = [
            (start, number, [worker for worker in workers if worker not in gone])
            for start, number, workers in self.coming
        ]
        self.coming[:] = [entry for entry in left if entry[2]]
        heapify(self.coming)
        self._abort(gone)
        return self.end(now)[1]

    @abstractmethod
    def _abort(self, gone: Collection[int]) -> None:
        """Those of them who have begun are on their way no more."""

    @abstractmethod
    def _course(self) -> Course:
        """Is sent the time, and yields who is done."""


def shared_link(bytes_per_second: float, limits: Sequence[float], num_bytes: float) -> Link:
    """A link of `bytes_per_second`; worker i takes at most limits[i] of it."""
    if len(set(limits)) == 1:
        return EqualLink(bytes_per_second, limits[0], num_bytes)
    return UnequalLink(bytes_per_second, limits, num_bytes)


class EqualLink(Link):
    """Everybody has the same limit, so all under way have received equally much since they were there together.

    A clock counts those bytes (virtual time, Parekh and Gallager 1993): who joined first ends first, when the clock has
    gone on by its size, and nobody's remainder is ever touched.

    >>> link = EqualLink(bytes_per_second=10.0, limit=10.0, num_bytes=20.0)
    >>> link.coming += [(0.0, 0, [3]), (1.0, 1, [5])]
    >>> link.end(2.0)     # worker 3 had 10 bytes left when 5 came; since then each gets 5 bytes/s
    ([], 3.0)
    >>> link.end(3.0)
    ([3], 4.0)
    """

    def __init__(self, bytes_per_second: float, limit: float, num_bytes: float) -> None:
        self.capacity = bytes_per_second
        self.limit = min(limit, bytes_per_second)
        self.bytes = num_bytes
        self.queue: deque[tuple[float, int]] = deque()  # (the clock at its end, worker)
        super().__init__(num_bytes / self.limit)

    def _abort(self, gone: Collection[int]) -> None:
        left = [transfer for transfer in self.queue if transfer[1] not in gone]
        self.queue.clear()
        self.queue.extend(left)

    def _course(self) -> Course:
        coming, queue, num_bytes, alone_seconds = self.coming, self.queue, self.bytes, self.alone_seconds
        capacity, limit = self.capacity, self.limit
        clock, settled, ended, next_end = 0.0, 0.0, [], NEVER  # the clock's bytes at the time `settled`
        rate = limit
        while True:
            now = yield ended, next_end
            if queue:
                rate = ...
