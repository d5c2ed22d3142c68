"""Links without a clock, for the loop: transfers of one size that cross one shared link, each at most at its own speed.

A push crosses its worker's up-link and the server's down-link, an answer the server's up-link and its worker's
down-link. A worker has one of each at a time, so max-min fairness is simple here: everybody gets the same share of the
server's link, except those whose own link is slower than that. Equal shares are kept by virtual time (Parekh and
Gallager 1993): a clock that counts the bytes each transfer under way has received, so nobody's remainder is ever
touched. A link tells when its next transfer ends; who owns the time asks.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Protocol

from distsim.network import OVER


class Link(Protocol):
    """next_end: when the next transfer ends if nobody joins or leaves before."""

    next_end: float

    def join(self, now: float, workers: Iterable[int]) -> None:
        """The transfers of these workers begin."""
        ...

    def leave(self, now: float, worker: int) -> None:
        """This worker's transfer is aborted, if it has one."""
        ...

    def end(self, now: float) -> list[int]:
        """The workers whose transfers end now, in the order in which they joined."""
        ...


def shared_link(bytes_per_second: float, limits: Sequence[float], num_bytes: float) -> Link:
    """A link of `bytes_per_second`; worker i takes at most limits[i] of it."""
    if len(set(limits)) == 1:
        return EqualLink(bytes_per_second, limits[0], num_bytes)
    return UnequalLink(bytes_per_second, limits, num_bytes)


class EqualLink:
    """Everybody has the same limit, so who joined first ends first.

    >>> link = EqualLink(bytes_per_second=10.0, limit=10.0, num_bytes=20.0)
    >>> link.join(0.0, [3])
    >>> link.join(1.0, [5])     # worker 3 has 10 bytes left, at 5 bytes/s
    >>> link.next_end, link.end(3.0), link.next_end
    (3.0, [3], 4.0)
    """

    def __init__(self, bytes_per_second: float, limit: float, num_bytes: float) -> None:
        self.capacity = bytes_per_second
        self.limit = limit
        self.bytes = num_bytes
        self.queue: deque[tuple[float, int]] = deque()  # (the virtual time of its end, worker)
        self.virtual = 0.0  # bytes that each transfer under way has received
        self.at_seconds = 0.0
        self.rate = 0.0
        self.next_end = math.inf

    def join(self, now: float, workers: Iterable[int]) -> None:
        self.virtual = self.virtual + (now - self.at_seconds) * self.rate if self.queue else 0.0
        end = self.virtual + self.bytes
        for worker in workers:
            self.queue.append((end, worker))
        self._share(now)

    def leave(self, now: float, worker: int) -> None:
        self.virtual += (now - self.at_seconds) * self.rate
        self.queue = deque(transfer for transfer in self.queue if transfer[1] != worker)
        self._share(now)

    def end(self, now: float) -> list[int]:
        queue = self.queue
        virtual = self.virtual + (now - self.at_seconds) * self.rate
        if now >= self.next_end and virtual < queue[0][0]:
            virtual = queue[0][0]
        self.virtual = virtual
        over = virtual + self.rate * OVER * now
        ended = []
        while queue and queue[0][0] <= over:
            ended.append(queue.popleft()[1])
        self._share(now)
        return ended

    def _share(self, now: float) -> None:
        self.at_seconds = now
        queue = self.queue
        if queue:
            share = self.capacity / len(queue)
            self.rate = rate = share if share < self.limit else self.limit
            left = queue[0][0] - self.virtual
            self.next_end = now + left / rate if left > 0.0 else now
        else:
            self.next_end = math.inf


class Lane:
    """The transfers of one limit: a virtual clock of their own, or the link's shared one plus an offset."""

    __slots__ = ("at_limit", "at_seconds", "limit", "queue", "virtual")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.at_limit = False  # or it has a fair share
        self.queue: deque[tuple[float, int, int]] = deque()  # (the virtual time of its end, number of joining, worker)
        self.virtual = 0.0  # at `at_seconds` while at its limit; less the shared clock while it has a fair share
        self.at_seconds = 0.0


class UnequalLink:
    """Limits differ: a lane for each. The slowest lanes run at their limits, the others divide what those leave.

    Every lane's transfers end in order of joining, so the next end is the soonest of the lanes' heads: two heaps of
    them, one by time and one by the shared clock.

    >>> link = UnequalLink(bytes_per_second=10.0, limits=[2.0, 10.0, 10.0], num_bytes=20.0)
    >>> link.join(0.0, [0, 1, 2])       # 2, 4 and 4 bytes/s
    >>> link.next_end, link.end(5.0), link.next_end, link.end(10.0)
    (5.0, [1, 2], 10.0, [0])
    """

    def __init__(self, bytes_per_second: float, limits: Sequence[float], num_bytes: float) -> None:
        self.capacity = bytes_per_second
        self.bytes = num_bytes
        self.lanes = [Lane(limit) for limit in sorted(set(limits))]
        number = {lane.limit: index for index, lane in enumerate(self.lanes)}
        self.lane_of = [number[limit] for limit in limits]
        self.busy: list[int] = []  # lanes with transfers, by ascending limit
        self.slow = 0  # busy[:slow] run at their limits
        self.taken = 0.0  # bytes per second that those take
        self.sharing = 0  # transfers that have a fair share
        self.joined = 0
        self.virtual = 0.0  # the shared clock: bytes received at a fair share
        self.at_seconds = 0.0
        self.share = 0.0
        self.by_time: list[tuple[float, int]] = []  # (seconds, lane): a head's end at its limit; some are outdated
        self.by_share: list[tuple[float, int]] = []  # (shared clock, lane): a head's end at a fair share
        self.next_end = math.inf

    def join(self, now: float, workers: Iterable[int]) -> None:
        self._advance(now)
        for worker in workers:
            self._add(now, worker)
        self._settle(now)

    def leave(self, now: float, worker: int) -> None:
        number = self.lane_of[worker]
        lane = self.lanes[number]
        kept = deque(transfer for transfer in lane.queue if transfer[2] != worker)
        if len(kept) == len(lane.queue):
            return
        self._advance(now)
        lane.queue = kept
        self._take_off(number)
        self._settle(now)

    def end(self, now: float) -> list[int]:
        self._advance(now)
        ended = []
        for heap, bound in (
            (self.by_time, now + OVER * now),
            (self.by_share, self.virtual + self.share * OVER * now),
        ):
            while heap and heap[0][0] <= bound:
                if not self._is_valid(heap):
                    heappop(heap)
                    continue
                number = heappop(heap)[1]
                queue = self.lanes[number].queue
                over = queue[0][0] + self.lanes[number].limit * OVER * now
                while queue and queue[0][0] <= over:
                    ended.append(queue.popleft()[1:])
                    self._take_off(number)
        self._settle(now)
        return [worker for _, worker in sorted(ended)] if len(ended) > 1 else [worker for _, worker in ended]

    def _advance(self, now: float) -> None:
        if not self.busy:
            self.virtual = self.taken = 0.0
        elif self.sharing:
            self.virtual += (now - self.at_seconds) * self.share
            behind = now >= self.next_end and self.virtual < self.by_share[0][0]
            if behind and not (self.by_time and self.by_time[0][0] <= self.next_end):
                self.virtual = self.by_share[0][0]  # rounding must not leave behind the transfer whose end is now
        self.at_seconds = now

    def _add(self, now: float, worker: int) -> None:
        number = self.lane_of[worker]
        lane = self.lanes[number]
        first = not lane.queue
        if first:
            place = bisect_left(self.busy, number)
            self.busy.insert(place, number)
            lane.at_limit = place < self.slow
            self.slow += lane.at_limit
            lane.virtual = 0.0 if lane.at_limit else -self.virtual
            lane.at_seconds = now
            clock = 0.0
        elif lane.at_limit:
            clock = lane.virtual + (now - lane.at_seconds) * lane.limit
        else:
            clock = lane.virtual + self.virtual
        self.joined += 1
        lane.queue.append((clock + self.bytes, self.joined, worker))
        if lane.at_limit:
            self.taken += lane.limit
        else:
            self.sharing += 1
        if first:
            self._tell_head(number)

    def _take_off(self, number: int) -> None:
        """One transfer fewer in a lane."""
        lane = self.lanes[number]
        if lane.at_limit:
            self.taken -= lane.limit
        else:
            self.sharing -= 1
        if lane.queue:
            self._tell_head(number)
        else:
            self.busy.remove(number)
            self.slow -= lane.at_limit

    def _head_end(self, lane: Lane) -> float:
        """The end of a lane's first transfer: in seconds at its limit, else on the shared clock."""
        if lane.at_limit:
            return lane.at_seconds + (lane.queue[0][0] - lane.virtual) / lane.limit
        return lane.queue[0][0] - lane.virtual

    def _tell_head(self, number: int) -> None:
        lane = self.lanes[number]
        heappush(self.by_time if lane.at_limit else self.by_share, (self._head_end(lane), number))

    def _is_valid(self, heap: list[tuple[float, int]]) -> bool:
        end, number = heap[0]
        lane = self.lanes[number]
        return bool(lane.queue) and lane.at_limit == (heap is self.by_time) and end == self._head_end(lane)

    def _settle(self, now: float) -> None:
        """Finds the fair share: lanes slower than it run at their limits, and only those."""
        busy, lanes = self.busy, self.lanes
        share = self._fair_share()
        while self.slow and lanes[busy[self.slow - 1]].limit > share:
            self._move(now, busy[self.slow - 1], to_limit=False)
            share = self._fair_share()
        while self.slow < len(busy) and lanes[busy[self.slow]].limit <= share:
            self._move(now, busy[self.slow], to_limit=True)
            share = self._fair_share()
        self.share = share
        self.next_end = math.inf
        for heap in (self.by_time, self.by_share):
            while heap and not self._is_valid(heap):
                heappop(heap)
        if self.by_time:
            self.next_end = max(self.by_time[0][0], now)
        if self.by_share:
            self.next_end = min(self.next_end, now + max(self.by_share[0][0] - self.virtual, 0.0) / share)

    def _fair_share(self) -> float:
        if self.sharing:
            return (self.capacity - self.taken) / self.sharing
        return math.inf if self.taken <= self.capacity else 0.0

    def _move(self, now: float, number: int, *, to_limit: bool) -> None:
        """A lane changes from a fair share to its limit, or back."""
        lane = self.lanes[number]
        count = len(lane.queue)
        if to_limit:
            lane.virtual += self.virtual
            lane.at_seconds = now
            self.slow += 1
            self.sharing -= count
            self.taken += count * lane.limit
        else:
            lane.virtual += (now - lane.at_seconds) * lane.limit - self.virtual
            self.slow -= 1
            self.sharing += count
            self.taken -= count * lane.limit
        lane.at_limit = to_limit
        self._tell_head(number)
