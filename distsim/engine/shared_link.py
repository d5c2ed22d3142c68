"""A server's link without a clock, for the loop. All transfers have one size; each worker's own link limits them.

A push crosses its worker's up-link and the server's down-link; an answer crosses the server's up-link and its worker's
down-link. A worker has one push and one answer at a time, so max-min fairness is simple: each transfer gets the same
share of the server's link, unless the worker's link is slower than this share. Virtual time keeps the shares equal
(Parekh and Gallager 1993): a clock counts the bytes that each transfer has received.

The caller owns the clock. It tells the link when each transfer starts, and calls `end` at `next_end` to learn which
transfers finish. A transfer that starts in between can only delay the others, so `end` sometimes returns none.

An example: a link of 10 bytes/s, transfers of 20 bytes. Worker 0 starts at 0 and has 10 bytes left when worker 1 starts
at 1. Then each gets 5 bytes/s: worker 0 finishes at 3, and worker 1, with 10 bytes left, at 4.

>>> link = shared_link(10.0, limits=[10.0, 10.0], num_bytes=20.0)
>>> link.join(0.0, [0])
>>> link.join(1.0, [1])
>>> link.next_end, link.end(2.0)            # alone, worker 0 would finish at 2
(2.0, [])
>>> link.next_end, link.end(3.0), link.next_end, link.end(4.0)
(3.0, [0], 4.0, [1])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from itertools import count

from distsim.network import OVER

NEVER = math.inf


class ServerLink(ABC):
    """next_end: no transfer finishes earlier. alone_seconds: the shortest time that a transfer can take."""

    def __init__(self, alone_seconds: float) -> None:
        self.coming: list[tuple[float, int, Sequence[int]]] = []  # a heap of transfers to start; ties by number
        self.joins = count()
        self.alone_seconds = alone_seconds
        self.next_end = NEVER

    def join(self, start: float, workers: Sequence[int]) -> None:
        """The transfers of these workers start at `start`, after transfers that joined earlier for the same instant."""
        heappush(self.coming, (start, next(self.joins), workers))
        if start + self.alone_seconds < self.next_end:
            self.next_end = start + self.alone_seconds

    @abstractmethod
    def end(self, now: float) -> Sequence[int]:
        """The workers whose transfers finish now, in the order in which they started."""

    @abstractmethod
    def leave(self, now: float, leaving: Collection[int]) -> None:
        """The transfers of these workers are aborted, or never start."""

    def _stay_away(self, leaving: Collection[int]) -> None:
        stay = [
            (start, number, [one for one in workers if one not in leaving]) for start, number, workers in self.coming
        ]
        self.coming = sorted(entry for entry in stay if entry[2])


def shared_link(bytes_per_second: float, limits: Sequence[float], num_bytes: float) -> ServerLink:
    """A link of `bytes_per_second`; worker i takes at most limits[i] of it."""
    if len(set(limits)) == 1:
        return EqualLink(bytes_per_second, limits[0], num_bytes, len(limits))
    return UnequalLink(bytes_per_second, limits, num_bytes)


class QueuedLink(ServerLink):
    """A fifo server's link: one transfer after the other, in the order of joining; worker i needs seconds[i].

    began: the start of the transfer that finished last.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        super().__init__(min(seconds))
        self.seconds = seconds
        self.free_seconds = self.began = 0.0

    def wait(self, until: float) -> None:
        """No transfer starts before `until`."""
        self.free_seconds = self.next_end = until

    def leave(self, now: float, leaving: Collection[int]) -> None:  # noqa: ARG002 - a transfer that leaves has not started
        self._stay_away(leaving)

    def end(self, now: float) -> Sequence[int]:
        coming = self.coming
        done: Sequence[int] = ()
        while coming:
            start, _, workers = coming[0]
            free = self.free_seconds
            began = start if start > free else free
            next_end = began + self.seconds[workers[0]]
            if done or next_end > now + OVER * now:
                self.next_end = next_end
                return done
            heappop(coming)
            self.began, self.free_seconds, done = began, now, workers
        self.next_end = NEVER
        return done


class EqualLink(ServerLink):
    """A link whose limits are all equal, so the transfer that starts first finishes first.

    >>> link = EqualLink(bytes_per_second=10.0, limit=10.0, num_bytes=20.0, workers=2)
    >>> link.join(0.0, [3])
    >>> link.join(1.0, [5])     # worker 3 has 10 bytes left, at 5 bytes/s
    >>> link.end(2.0), link.next_end, link.end(3.0), link.next_end
    ([], 3.0, [3], 4.0)
    """

    def __init__(self, bytes_per_second: float, limit: float, num_bytes: float, workers: int) -> None:
        self.rates = [min(limit, bytes_per_second / max(number, 1)) for number in range(workers + 1)]  # by count
        super().__init__(num_bytes / self.rates[1])
        self.bytes = num_bytes
        self.queue: deque[tuple[float, Sequence[int]]] = deque()  # (the clock at the end, workers)
        self.under_way = 0
        self.clock = self.at_seconds = 0.0

    def join(self, start: float, workers: Sequence[int]) -> None:
        """As in the base class, but a transfer that joins never finishes before the transfers under way."""
        heappush(self.coming, (start, next(self.joins), workers))
        if not self.queue and start + self.alone_seconds < self.next_end:
            self.next_end = start + self.alone_seconds

    def end(self, now: float) -> Sequence[int]:
        coming, queue, rates, under_way = self.coming, self.queue, self.rates, self.under_way
        clock, at = self.clock, self.at_seconds
        while coming and coming[0][0] <= now:
            start, _, workers = heappop(coming)
            clock = clock + (start - at) * rates[under_way] if queue else 0.0
            at = start
            under_way += len(workers)
            queue.append((clock + self.bytes, workers))
        ended: list[int] = []
        if queue:
            rate = rates[under_way]
            if at + (queue[0][0] - clock) / rate <= now + OVER * now:
                clock, workers = queue.popleft()
                ended += workers
                while queue and queue[0][0] <= clock + rate * OVER * now:
                    ended += queue.popleft()[1]
                under_way -= len(ended)
            else:
                clock += (now - at) * rate
        self.under_way = under_way
        if queue:
            self.clock, self.at_seconds = clock, now
            left, rate = queue[0][0] - clock, rates[under_way]
            next_end = now + left / rate
            if coming and coming[0][0] < next_end:  # a transfer that joins earlier delays the end
                start, _, workers = coming[0]
                next_end = start + (left - (start - now) * rate) / rates[under_way + len(workers)]
            self.next_end = next_end
        else:
            self.next_end = coming[0][0] + self.alone_seconds if coming else NEVER
        return ended

    def leave(self, now: float, leaving: Collection[int]) -> None:
        due = self.end(now)  # none, except by rounding
        self._stay_away(leaving)
        under_way = [(self.clock, due), *self.queue] if due else self.queue
        stay = [(goal, [worker for worker in workers if worker not in leaving]) for goal, workers in under_way]
        self.queue = deque((goal, workers) for goal, workers in stay if workers)
        self.under_way = sum(len(workers) for _, workers in self.queue)
        self.next_end = now  # the other transfers finish sooner


class UnequalLink(ServerLink):
    """A link whose limits differ: the slowest transfers run at their limits, the others divide the rest equally.

    >>> link = UnequalLink(bytes_per_second=10.0, limits=[2.0, 10.0, 10.0], num_bytes=20.0)
    >>> link.join(0.0, [0, 1, 2])       # 2, 4 and 4 bytes/s
    >>> link.end(2.0), link.next_end, link.end(5.0), link.next_end, link.end(10.0)
    ([], 5.0, [1, 2], 10.0, [0])
    """

    def __init__(self, bytes_per_second: float, limits: Sequence[float], num_bytes: float) -> None:
        super().__init__(num_bytes / min(max(limits), bytes_per_second))
        self.capacity, self.limits, self.bytes = bytes_per_second, limits, num_bytes
        self.began: dict[int, int] = {}  # by worker under way: the place in the order of starting
        self.begun = 0
        self.order: list[tuple[float, int]] = []  # (limit, worker) of all transfers under way
        self.slow = 0  # the number of transfers at the start of `order` that run at their limits,
        self.taken = 0.0  # and their bytes per second together
        self.ends: dict[int, float] = {}  # by worker of these transfers: the time at the end
        self.goals: dict[int, float] = {}  # by worker of the others: the clock at the end
        self.clock = self.at_seconds = self.share = 0.0
        self.first_end = self.first_goal = NEVER  # the least end and the least goal

    def end(self, now: float) -> Sequence[int]:
        self._advance(now)
        ended = []
        if self.first_end <= now + OVER * now:
            ended = [worker for worker, end in self.ends.items() if end <= now + OVER * now]
        over = self.clock + self.share * OVER * now if self.goals else 0.0
        if self.first_goal <= over:
            ended += [worker for worker, goal in self.goals.items() if goal <= over]
        if ended:
            self._remove(ended)
            if len(ended) > 1:
                ended.sort(key=self.began.__getitem__)
        self.next_end = self.first_end
        if self.coming:
            self.next_end = min(self.next_end, self.coming[0][0] + self.alone_seconds)
        if self.goals:
            self.next_end = min(self.next_end, now + (self.first_goal - self.clock) / self.share)
        return ended

    def leave(self, now: float, leaving: Collection[int]) -> None:
        self._advance(now)
        self._stay_away(leaving)
        self._remove([worker for _, worker in self.order if worker in leaving])
        self.next_end = now  # the other transfers finish sooner

    def _advance(self, now: float) -> None:
        """Starts the transfers that are due, and moves the clock."""
        while self.coming and self.coming[0][0] <= now:
            start, _, workers = heappop(self.coming)
            self._go_on(start)
            for worker in workers:
                self._add(worker)
            self._divide()
        self._go_on(now)

    def _go_on(self, now: float) -> None:
        if self.goals:
            due = self.at_seconds + (self.first_goal - self.clock) / self.share <= now + OVER * now
            self.clock = self.first_goal if due else self.clock + (now - self.at_seconds) * self.share
        elif not self.order:
            self.clock = self.taken = 0.0
        self.at_seconds = now

    def _add(self, worker: int) -> None:
        self.begun += 1
        self.began[worker] = self.begun
        limit = self.limits[worker]
        place = bisect_left(self.order, (limit, worker))
        self.order.insert(place, (limit, worker))
        if place < self.slow:
            self.slow += 1
            self.taken += limit
            self.ends[worker] = self.at_seconds + self.bytes / limit
        else:
            self.goals[worker] = self.clock + self.bytes

    def _remove(self, workers: Sequence[int]) -> None:
        for worker in workers:
            place = bisect_left(self.order, (self.limits[worker], worker))
            del self.order[place]
            if place < self.slow:
                self.slow -= 1
                self.taken -= self.limits[worker]
                del self.ends[worker]
            else:
                del self.goals[worker]
        self._divide()

    def _divide(self) -> None:
        """Finds the fair share. A transfer with a limit below the share runs at its limit."""
        order = self.order
        share = self._fair_share()
        while self.slow and order[self.slow - 1][0] > share:
            self.slow -= 1
            limit, worker = order[self.slow]
            self.taken -= limit
            self.goals[worker] = self.clock + (self.ends.pop(worker) - self.at_seconds) * limit
            share = self._fair_share()
        while self.slow < len(order) and order[self.slow][0] <= share:
            limit, worker = order[self.slow]
            self.slow += 1
            self.taken += limit
            self.ends[worker] = self.at_seconds + (self.goals.pop(worker) - self.clock) / limit
            share = self._fair_share()
        self.share = share
        self.first_end = min(self.ends.values()) if self.ends else NEVER
        self.first_goal = min(self.goals.values()) if self.goals else NEVER

    def _fair_share(self) -> float:
        sharing = len(self.order) - self.slow
        if sharing:
            return (self.capacity - self.taken) / sharing
        return math.inf if self.taken <= self.capacity else 0.0
