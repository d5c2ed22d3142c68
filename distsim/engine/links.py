"""Links without a clock, for the loop: transfers of one size, each at most at its worker's own speed.

A push crosses its worker's up-link and the server's down-link, an answer the server's up-link and its worker's
down-link. A worker has one of each at a time, so max-min fairness is simple here: everybody gets the same share of the
server's link, except those whose own link is slower than that. What all have received since they were there together
is then the same, so a clock counts those bytes (virtual time, Parekh and Gallager 1993), and nobody's remainder is ever
touched: a transfer is over when the clock has gone on by its size.

Who owns the time puts transfers that are to begin into `coming`, and asks `end(now)` who is done. The answer also says
when to ask again: nobody is done before. Who begins meanwhile may put that off, so at times nobody is done then either.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from heapq import heapify, heappop, heappush

from distsim.network import OVER

NEVER = math.inf
Ended = tuple[list[int], float]  # the workers whose transfers end now, in the order of joining, and when to ask again
Course = Generator[Ended, float, None]


class Link(ABC):
    """coming: a heap of (when they begin, a number that breaks ties, workers). alone_seconds: no transfer is faster."""

    def __init__(self, alone_seconds: float) -> None:
        self.coming: list[tuple[float, int, Sequence[int]]] = []
        self.alone_seconds = alone_seconds
        course = self._course()
        next(course)
        self.end: Callable[[float], Ended] = course.send

    @abstractmethod
    def _course(self) -> Course:
        """Is sent the time, and yields who is done: a generator, because nothing is faster to reach than its state."""

    @abstractmethod
    def leave(self, now: float, gone: Collection[int]) -> float:
        """The transfers of these workers are aborted, or never begin; when to ask again."""

    def _stay_away(self, gone: Collection[int]) -> None:
        left = [(start, number, [one for one in workers if one not in gone]) for start, number, workers in self.coming]
        self.coming[:] = [entry for entry in left if entry[2]]
        heapify(self.coming)


def shared_link(bytes_per_second: float, limits: Sequence[float], num_bytes: float) -> Link:
    """A link of `bytes_per_second`; worker i takes at most limits[i] of it."""
    if len(set(limits)) == 1:
        return EqualLink(bytes_per_second, limits[0], num_bytes)
    return UnequalLink(bytes_per_second, limits, num_bytes)


class EqualLink(Link):
    """Everybody has the same limit, so who joined first ends first.

    >>> link = EqualLink(bytes_per_second=10.0, limit=10.0, num_bytes=20.0)
    >>> link.coming += [(0.0, 1, [3]), (1.0, 2, [5])]
    >>> link.end(2.0)     # worker 3 had 10 bytes left when worker 5 came; since then they share
    ([], 3.0)
    >>> link.end(3.0)
    ([3], 4.0)
    """

    def __init__(self, bytes_per_second: float, limit: float, num_bytes: float) -> None:
        self.capacity = bytes_per_second
        self.limit = min(limit, bytes_per_second)
        self.bytes = num_bytes
        self.queue: deque[tuple[float, int]] = deque()  # (the clock when it is over, worker)
        super().__init__(num_bytes / self.limit)

    def leave(self, now: float, gone: Collection[int]) -> float:
        if self.bytes == 0.0:  # nothing is ever under way
            self._stay_away(gone)
            return self.coming[0][0] if self.coming else NEVER
        self.end(now)  # takes all up to this instant, in which nobody is done who was not told of before
        self._stay_away(gone)
        left = [transfer for transfer in self.queue if transfer[1] not in gone]
        self.queue.clear()
        self.queue.extend(left)
        return self.end(now)[1]

    def _course(self) -> Course:
        coming, queue, alone_seconds = self.coming, self.queue, self.alone_seconds
        capacity, limit, num_bytes = self.capacity, self.limit, self.bytes
        clock, at_seconds, rate = 0.0, 0.0, limit
        ended: list[int] = []
        next_end = NEVER
        while True:
            now = yield ended, next_end
            # join
            while coming and coming[0][0] <= now:
                start, _, workers = heappop(coming)
                clock = clock + (start - at_seconds) * rate if queue else 0.0
                at_seconds = start
                goal = clock + num_bytes
                for worker in workers:
                    queue.append((goal, worker))
                rate = capacity / len(queue)
                if rate > limit:
                    rate = limit
            # end
            ended = []
            if queue:
                goal = queue[0][0]
                if at_seconds + (goal - clock) / rate <= now + OVER * now:
                    clock = goal
                    over = goal + rate * OVER * now
                    while queue and queue[0][0] <= over:
                        ended.append(queue.popleft()[1])
                else:
                    clock += (now - at_seconds) * rate
                at_seconds = now
            # share
            if queue:
                rate = capacity / len(queue)
                if rate > limit:
                    rate = limit
                next_end = now + (queue[0][0] - clock) / rate
            elif coming:
                next_end = coming[0][0] + alone_seconds
            else:
                next_end = NEVER


class Turns(Link):
    """A server that receives one transfer after the other, in the order in which they come.

    began: when it turned to the one that ended last.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        self.seconds = seconds
        self.free_seconds = 0.0
        self.began = 0.0
        super().__init__(min(seconds))

    def wait(self, until: float) -> float:
        """The server has something else to do until then; when to ask again."""
        self.free_seconds = until
        return self._next_end()

    def leave(self, now: float, gone: Collection[int]) -> float:
        self._stay_away(gone)
        return self._next_end()

    def _next_end(self) -> float:
        if not self.coming:
            return NEVER
        return max(self.coming[0][0], self.free_seconds) + self.seconds[self.coming[0][2][0]]

    def _course(self) -> Course:
        coming, seconds = self.coming, self.seconds
        ended: list[int] = []
        next_end = NEVER
        while True:
            now = yield ended, next_end
            ended = []
            if self._next_end() <= now + OVER * now:
                start, _, (worker,) = heappop(coming)
                ended = [worker]
                self.began = max(start, self.free_seconds)
                self.free_seconds = now
            next_end = self._next_end()


class UnequalLink(Link):
  def _course(self):
    yield
