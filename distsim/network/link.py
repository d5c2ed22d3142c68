"""One link: the flows that cross it, and the clock of those that it holds.

A flow is held by the link on which it gets least. All that one link holds have the same rate, so virtual time keeps
them (Parekh and Gallager 1993): the link's clock counts the bytes that each of them has received, and a flow is over
when the clock reads its end. A new rate changes the clock alone, however many flows there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush

import simpy

OVER = 1e-15  # a flow is over when what remains takes at most this share of the time now


class Link:
    """One direction of a NIC or a wire.

    flows: all that cross it, in the order of joining. rate, end_seconds: of the flows held here, the bytes/s of each
    and when the first of them ends unless the rate changes. ends: a heap, to which the link adds itself whenever
    end_seconds changes; number: its place there among equals.
    """

    __slots__ = (
        "_at_seconds", "_bytes", "_held", "capacity", "end_seconds", "ends", "flows", "holding", "lowest", "number",
        "rate",
    )  # fmt: skip

    def __init__(self, bytes_per_second: float, number: int, ends: list[tuple[float, int, Link]]) -> None:
        self.capacity = bytes_per_second
        self.number = number
        self.ends = ends
        self.flows: dict[Flow, None] = {}
        self.lowest = math.inf  # no flow here has a lower limit
        self.holding = 0
        self.rate = 0.0
        self.end_seconds = math.inf
        self._held: list[tuple[float, int, Flow]] = []  # a heap by end; some have left, or have another holder
        self._bytes = 0.0  # what the clock read at _at_seconds: bytes that each flow held here has received
        self._at_seconds = 0.0

    def carry_alone(self, now: float, flow: Flow) -> None:
        """From now on this link holds `flow` and no other, at all of its capacity: `hold` and `run` in one."""
        flow.holder = self
        flow.end = flow.num_bytes
        self.holding = 1
        self._held.append((flow.end, flow.number, flow))
        self._at_seconds = now
        self.rate = self.capacity
        self.end_seconds = now + flow.num_bytes / self.capacity
        heappush(self.ends, (self.end_seconds, self.number, self))

    def hold(self, now: float, flow: Flow) -> None:
        """From now on this link holds `flow`; `run` tells at which rate."""
        remaining = flow.num_bytes
        holder = flow.holder
        if holder:
            remaining = flow.end - (holder._bytes + holder.rate * (now - holder._at_seconds))
            holder.let_go(flow)
        flow.holder = self
        flow.end = self._bytes + self.rate * (now - self._at_seconds) + remaining
        self.holding += 1
        heappush(self._held, (flow.end, flow.number, flow))

    def let_go(self, flow: Flow) -> None:
        """This link holds `flow` no more; without any the clock starts anew."""
        flow.holder = None
        self.holding -= 1
        if not self.holding:
            self._held.clear()
            self.rate = self._bytes = 0.0
            self.end_seconds = math.inf

    def run(self, now: float, rate: float) -> None:
        """From now on the flows held here, one at least, have this rate."""
        self._bytes += self.rate * (now - self._at_seconds)
        self._at_seconds = now
        self.rate = rate
        held = self._held
        while held[0][2].holder is not self or held[0][2].end != held[0][0]:
            heappop(held)
        left = held[0][0] - self._bytes
        self.end_seconds = now + left / rate if left > 0.0 else now
        heappush(self.ends, (self.end_seconds, self.number, self))

    def end(self, now: float) -> list[Flow]:
        """Lets go the flows that end now, when it is `end_seconds`: the first of those held, and all that end with it.

        Those left need a rate again.
        """
        held = self._held
        over = max(self._bytes + self.rate * (now - self._at_seconds), held[0][0]) + self.rate * OVER * now
        ended = []
        while held and held[0][0] <= over:
            end, _, flow = heappop(held)
            if flow.holder is self and flow.end == end:
                self.let_go(flow)
                ended.append(flow)
        self.end_seconds = math.inf
        return ended


@dataclass(frozen=True, slots=True)
class Route:
    """The links that a flow crosses; the narrowest of them limits it where nobody else is in its way."""

    links: tuple[Link, ...]
    narrowest: Link
    limit: float

    @classmethod
    def of(cls, links: tuple[Link, ...]) -> Route:
        """The route over these links."""
        narrowest = min(links, key=lambda link: link.capacity)
        return cls(links, narrowest, narrowest.capacity)


class Flow(simpy.Event):
    """A transfer on its way; as an event it happens when the last byte has arrived.

    start_seconds: when it began to wait the latency. number: counts flows as they join; 0: this one is not under way.
    shared: how many of its links others cross too. holder: the link that holds it. end: what that link's clock reads
    when this flow is over.
    """

    __slots__ = (
        "aborted", "end", "holder", "latency_seconds", "num_bytes", "number", "route", "shared", "start_seconds",
    )  # fmt: skip

    def __init__(self, environment: simpy.Environment, route: Route, num_bytes: float, latency_seconds: float) -> None:
        self.env = environment
        self.callbacks = []
        self.route = route
        self.num_bytes = num_bytes
        self.latency_seconds = latency_seconds
        self.start_seconds = math.nan
        self.number = 0
        self.shared = 0
        self.holder: Link | None = None
        self.end = math.nan
        self.aborted = False

    def happen(self, _: simpy.Event) -> None:
        """The last byte has arrived: who waits for it goes on at once, within the event that brought it."""
        if self.aborted:
            return
        callbacks, self.callbacks = self.callbacks, None  # type: ignore[assignment]
        self._ok, self._value = True, None
        for callback in callbacks:
            callback(self)

    @property
    def rate(self) -> float:
        """Bytes per second now."""
        return self.holder.rate if self.holder else 0.0
