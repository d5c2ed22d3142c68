"""Many flows that share links: columns with one place for each flow, and one solution for all changes of an instant.

leave        flows whose last byte has arrived, and aborted flows, give their places back.
join         flows whose latency is over get places.
share out    the rates that can change are filled progressively, over what the other flows leave free.

The invariant: after each `share_out` the rates are those of progressive filling, which raises all rates together from 0
and stops each flow when one of its links is full. Below some level a change cannot be felt:

* A flow with rate r has left. None of its links was full below r. Without the flow none of them is full there either.
* A new flow reaches the level r by filling each of its links against the old rates. Below r none of them is full.

So up to the lowest of these levels the filling goes as it went before the change, and the flows with a lower rate keep
it. An example, in bytes/s: a = 2, b = 10 and c = 20.

>>> import simpy
>>> from distsim.network.link import Flow, Link, Route
>>> a, b, c = (Link(capacity, number, []) for number, capacity in enumerate((2.0, 10.0, 20.0)))
>>> flows = [Flow(simpy.Environment(), Route.of(path), 1e3, 0.0) for path in ((a, b), (a, c), (b, c), (c,), (c,))]
>>> columns = FlowColumns([a, b, c])
>>> for flow in flows[:4]:
...     columns.join(flow)
>>> columns.share_out(0.0)
>>> [flow.rate for flow in flows]    # a is full at 1, then b at 9, and c at 10
[1.0, 1.0, 9.0, 10.0, 0.0]
>>> columns.leave(flows[2])          # its rate was 9: only 10 can change, and c has 20 - 1 for that flow
>>> columns.share_out(1.0)
>>> [flow.rate for flow in flows]
[1.0, 1.0, 0.0, 19.0, 0.0]
>>> columns.join(flows[4])           # beside 1 and 19, a new flow on c reaches (20 - 1) / 2: only 19 can change
>>> columns.share_out(2.0)
>>> [flow.rate for flow in flows]
[1.0, 1.0, 0.0, 9.5, 9.5]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from distsim.arrays import Floats, Integers
from distsim.network.link import OVER, Flow, Link

NEARLY = 1 - 1e-9  # two links with the same share may hold their flows to rates that differ by rounding
A_FEW = 8  # flows that join in one instant; of more, the level is not looked for, and all rates are solved again
BELOW_ALL = 1e-300  # no rate of a flow is as low
PLACES = 256  # at first; twice as many when all are taken


class FlowColumns:
    """The flows under way, in columns of places.

    links: of the network; their numbers count from 0 without gaps. next_end: in seconds, the first end of a flow at the
    present rates; infinite if there is none.
    """

    def __init__(self, links: Iterable[Link]) -> None:
        self._capacities = np.array([*(link.capacity for link in links), math.inf])
        self.next_end = math.inf
        self._flows: list[Flow | None] = []
        self._free: list[int] = []  # places without a flow
        self._new: dict[Flow, None] = {}  # flows that join when rates are next shared out
        self._level = math.inf  # since rates were last shared out: the lowest rate of a flow that has left
        self._links = np.empty((1, 0), dtype=np.int64)  # by row: the first link of each flow, the second, ...
        self._rates = np.empty(0)  # in bytes/s; 0 where there is no flow
        self._ends = np.empty(0)  # in seconds, at the present rates; infinite where there is no flow
        self._left = np.empty(0)  # bytes, at _since
        self._since = np.empty(0)  # seconds
        self._grow(1, PLACES)

    def __len__(self) -> int:
        return len(self._flows) - len(self._free) + len(self._new)

    @property
    def changed(self) -> bool:
        """Whether flows have joined or left since rates were last shared out."""
        return bool(self._new) or self._level < math.inf

    def rate(self, flow: Flow) -> float:
        """Of one of the flows, in bytes/s; 0 until rates are shared out."""
        return 0.0 if flow in self._new else float(self._rates[flow.place])

    def ended(self, now: float) -> list[Flow]:
        """The flows whose last byte has arrived. They have to leave."""
        return [self._flows[place] for place in (self._ends <= now + OVER * now).nonzero()[0].tolist()]  # type: ignore[misc]

    def leave(self, flow: Flow) -> None:
        """The flow is no longer under way."""
        flow.columns = None
        if flow in self._new:
            del self._new[flow]
            return
        place = flow.place
        self._level = min(self._level, float(self._rates[place]))
        self._rates[place], self._ends[place], self._flows[place] = 0.0, math.inf, None
        self._free.append(place)

    def leave_all(self, now: float) -> list[Flow]:
        """All flows leave, in the order of their numbers. Their `end` is now what remains of them, in bytes."""
        left = self._left - self._rates * (now - self._since)
        found = [flow for flow in self._flows if flow is not None]
        for flow in found:
            flow.columns = None
            flow.end = max(float(left[flow.place]), 0.0)
        for flow in self._new:
            flow.columns = None
        return sorted([*found, *self._new], key=lambda flow: flow.number)

    def join(self, flow: Flow) -> None:
        """The flow, of which `end` bytes remain, is under way."""
        flow.columns = self
        self._new[flow] = None

    def share_out(self, now: float) -> None:
        """New rates for the flows that can feel what has changed."""
        # leave, join
        level = NEARLY * min(self._level, self._take_places(now))
        self._level = math.inf
        # share out
        rates = self._rates
        changed = (rates >= level).nonzero()[0]
        if len(changed):
            links, free = self._links.take(changed, axis=1), self._capacities.copy()
            slow = np.where(rates < level, rates, 0.0)
            for crossed in self._links:
                free -= np.bincount(crossed, slow, len(free))
            old = rates.take(changed)
            received = np.where(old < math.inf, old, 0.0) * (now - self._since.take(changed))
            left = np.maximum(self._left.take(changed) - received, 0.0)
            new = filled(links, free)
            rates[changed], self._left[changed], self._since[changed] = new, left, now
            self._ends[changed] = now + left / new
        self.next_end = float(self._ends.min())

    def _take_places(self, now: float) -> float:
        """New flows get places, and an infinite rate. Returns the level that each of them at least reaches."""
        new, self._new = list(self._new), {}
        if not new:
            return math.inf
        level = self._reached(new)
        width = max(len(flow.route.links) for flow in new)
        if width > len(self._links) or len(new) > len(self._free):
            self._grow(width, len(self) + len(new))
        places = self._free[-len(new) :]
        del self._free[-len(new) :]
        for place, flow in zip(places, new, strict=True):
            flow.place = place
            self._flows[place] = flow
        # A path of fewer links than the longest also crosses the last link, which is never full.
        none = [len(self._capacities) - 1] * len(self._links)
        numbers = [[link.number for link in flow.route.links] + none[len(flow.route.links) :] for flow in new]
        self._links[:, places] = np.array(numbers).T
        self._rates[places], self._since[places] = math.inf, now
        self._left[places] = [flow.end for flow in new]
        return level

    def _reached(self, new: list[Flow]) -> float:
        """The level that each new flow at least reaches against the rates of the other flows on its links."""
        if len(new) > A_FEW:
            return BELOW_ALL
        level = math.inf
        for link, newcomers in Counter(link for flow in new for link in flow.route.links).items():
            there = (self._links == link.number).any(axis=0)
            level = min(level, water_level(link.capacity, self._rates[there], newcomers))
        return level

    def _grow(self, width: int, places: int) -> None:
        """Makes room for paths of `width` links, and for at least so many flows."""
        width, old = max(width, len(self._links)), len(self._flows)
        more = max(old * (places > old), PLACES * (old == 0), places - old)
        links = np.full((width, old + more), len(self._capacities) - 1)
        links[: len(self._links), :old] = self._links
        self._links = links
        self._rates, self._left, self._since = (
            np.append(column, np.zeros(more)) for column in (self._rates, self._left, self._since)
        )
        self._ends = np.append(self._ends, np.full(more, math.inf))
        self._flows += [None] * more
        self._free += range(old + more - 1, old - 1, -1)


def water_level(capacity: float, rates: Floats, newcomers: int) -> float:
    """The rate of each new flow on a link whose other flows keep their rates, or get the same rate as a new flow.

    >>> water_level(20.0, np.array([19.0, 1.0]), newcomers=1)
    9.5
    """
    slowest = np.sort(rates)
    sharing = np.arange(newcomers + len(rates), newcomers - 1, -1)
    shares = (capacity - np.concatenate(((0.0,), slowest.cumsum()))) / sharing
    return float(shares[np.argmax(np.append(slowest, math.inf) >= shares)])


def filled(links: Integers, free: Floats) -> Floats:
    """The max-min fair rates of flows. links: of shape (links of a path, flows); free: the capacity of each link.

    In one round, every link is a bottleneck none of whose flows gets less on another link.

    >>> filled(np.array([[0, 0, 1], [1, 2, 2]]), np.array([2.0, 10.0, 12.0]))
    array([1., 1., 9.])
    """
    rates = np.empty(links.shape[1])
    flows = np.arange(links.shape[1])  # without a rate yet
    crossing = np.bincount(links.ravel(), minlength=len(free)).astype(np.float64)
    while len(flows):
        shares = free / np.where(crossing, crossing, math.nan)
        offers = shares.take(links)
        lowest = offers.min(axis=0)
        bottleneck = np.ones(len(free), dtype=bool)
        bottleneck[links[offers > lowest]] = False
        holding = bottleneck.take(links).any(axis=0)
        held, others = np.flatnonzero(holding), np.flatnonzero(~holding)
        got = lowest.take(held)
        rates[flows.take(held)] = got
        # The other flows on their links divide the rest.
        for crossed in links.take(held, axis=1):
            free = free - np.bincount(crossed, got, len(free))
            crossing -= np.bincount(crossed, minlength=len(free))
        links, flows = links.take(others, axis=1), flows.take(others)
    return rates
