"""One link: the flows that cross it, and the virtual clock of the flows that it limits.

The bottleneck of a flow is the link that gives the flow the lowest rate. All flows with the same bottleneck have the
same rate, so one virtual clock serves them (Parekh and Gallager 1993): the clock counts the bytes that each flow has
received, and a flow ends when the clock reaches the flow's end. A new rate changes only the clock, not the flows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from distsim.network.flow_columns import FlowColumns

OVER = 1e-15  # a flow is over when what remains takes at most this share of the time now


class Link:
    """One direction of a NIC or a wire.

    flows: all flows that cross the link, in the order of joining. bottlenecked: the number of flows that the link
    limits. rate: of each limited flow, in bytes/s. end_seconds: the first end of a limited flow at this rate. ends: a
    heap; the link adds itself whenever end_seconds changes. number: counts the network's links, and breaks ties in the
    heap.
    """

    __slots__ = (
        "_at_seconds", "_bytes", "_limited", "bottlenecked", "capacity", "end_seconds", "ends", "flows", "lowest",
        "number", "rate",
    )  # fmt: skip

    def __init__(self, bytes_per_second: float, number: int, ends: list[tuple[float, int, Link]]) -> None:
        self.capacity = bytes_per_second
        self.number = number
        self.ends = ends
        self.flows: dict[Flow, None] = {}
        self.lowest = math.inf  # no flow here has a lower limit
        self.bottlenecked = 0
        self.rate = 0.0
        self.end_seconds = math.inf
        self._limited: list[
            tuple[float, int, Flow]
        ] = []  # a heap by end; some flows have left, or have another bottleneck
        self._bytes = 0.0  # the clock at _at_seconds: bytes that each flow limited here has received
        self._at_seconds = 0.0

    def carry_alone(self, now: float, flow: Flow) -> None:
        """From now on only `flow` runs here, at the full capacity: `limit_flow` and `set_rate` in one call."""
        flow.bottleneck = self
        self.bottlenecked = 1
        self._limited.append((flow.end, flow.number, flow))
        self._at_seconds = now
        self.rate = self.capacity
        self.end_seconds = now + flow.end / self.capacity
        heappush(self.ends, (self.end_seconds, self.number, self))

    def limit_flow(self, now: float, flow: Flow) -> None:
        """From now on this link is the bottleneck of `flow`; `set_rate` must follow."""
        if flow.bottleneck:
            flow.bottleneck.let_go(now, flow)
        flow.bottleneck = self
        flow.end += self._bytes + self.rate * (now - self._at_seconds)
        self.bottlenecked += 1
        heappush(self._limited, (flow.end, flow.number, flow))

    def let_go(self, now: float, flow: Flow) -> None:
        """This link no longer limits `flow`, which goes on."""
        flow.end -= self._bytes + self.rate * (now - self._at_seconds)
        self.release(flow)

    def release(self, flow: Flow) -> None:
        """This link no longer limits `flow`. When the link limits no flow, the clock starts again at 0."""
        flow.bottleneck = None
        self.bottlenecked -= 1
        if not self.bottlenecked:
            self._limited.clear()
            self.rate = self._bytes = 0.0
            self.end_seconds = math.inf

    def set_rate(self, now: float, rate: float) -> None:
        """From now on the flows limited here, at least one, have this rate."""
        self._bytes += self.rate * (now - self._at_seconds)
        self._at_seconds = now
        self.rate = rate
        held = self._limited
        while held[0][2].bottleneck is not self or held[0][2].end != held[0][0]:
            heappop(held)
        left = held[0][0] - self._bytes
        self.end_seconds = now + left / rate if left > 0.0 else now
        heappush(self.ends, (self.end_seconds, self.number, self))

    def end(self, now: float) -> list[Flow]:
        """Releases the flows that end now, at `end_seconds`: the first of those limited here, and its ties.

        The flows that remain need a new rate.
        """
        held = self._limited
        if len(held) == 1:
            flow = held[0][2]
            self.release(flow)
            return [flow]
        over = max(self._bytes + self.rate * (now - self._at_seconds), held[0][0]) + self.rate * OVER * now
        ended = []
        while held and held[0][0] <= over:
            end, _, flow = heappop(held)
            if flow.bottleneck is self and flow.end == end:
                self.release(flow)
                ended.append(flow)
        self.end_seconds = math.inf
        return ended


@dataclass(frozen=True, slots=True)
class Route:
    """The links that a flow crosses. limit: the capacity of the narrowest, in bytes/s."""

    links: tuple[Link, ...]
    narrowest: Link
    limit: float

    @classmethod
    def of(cls, links: tuple[Link, ...]) -> Route:
        """The route over these links."""
        narrowest = min(links, key=lambda link: link.capacity)
        return cls(links, narrowest, narrowest.capacity)


class Flow(simpy.Event):
    """A transfer; as an event it happens when the last byte has arrived.

    start_seconds: the start of the latency. number: counts flows as they join; 0: this flow is not under way.
    shared_links: the number of its links that other flows also cross. bottleneck: the link that limits the flow. end:
    the reading of the bottleneck's clock at which this flow ends; without a bottleneck, the bytes that remain.
    columns, place: where the flow is kept among many flows.
    """

    __slots__ = (
        "aborted", "bottleneck", "columns", "end", "latency_seconds", "num_bytes", "number", "place", "route",
        "shared_links", "start_seconds",
    )  # fmt: skip

    def __init__(self, environment: simpy.Environment, route: Route, num_bytes: float, latency_seconds: float) -> None:
        self.env = environment
        self.callbacks = []
        self.route = route
        self.num_bytes = num_bytes
        self.latency_seconds = latency_seconds
        self.start_seconds = math.nan
        self.number = 0
        self.shared_links = 0
        self.bottleneck: Link | None = None
        self.end = num_bytes
        self.columns: FlowColumns | None = None
        self.place = 0
        self.aborted = False

    def happen(self, _: simpy.Event) -> None:
        """The last byte has arrived: the callbacks run at once, within the event that brought it."""
        if self.aborted:
            return
        callbacks, self.callbacks = self.callbacks, None  # type: ignore[assignment]
        self._ok, self._value = True, None
        for callback in callbacks:
            callback(self)

    @property
    def rate(self) -> float:
        """Bytes per second now."""
        if self.columns is not None:
            return self.columns.rate(self)
        return self.bottleneck.rate if self.bottleneck else 0.0


class Departure(simpy.Event):
    """The event at which the latency of flows that have started together is over: a cheap timeout, as there are many.

    start_seconds: of the flows. latency_seconds: of each of them.
    """

    __slots__ = ("flows", "latency_seconds", "start_seconds")

    def __init__(self, flow: Flow, joins: Callable[[simpy.Event], None]) -> None:
        self.env = flow.env
        self.callbacks = [joins]
        self._ok, self._value = True, None
        self.flows = [flow]
        self.start_seconds = flow.start_seconds
        self.latency_seconds = flow.latency_seconds


def component_of(link: Link, many: int) -> tuple[Link, ...] | None:
    """The connected component of a link: the links that it reaches over flows that share several of their links.

    many: a number of flows. The result is None for several links with so many flows, where a flow that crosses three
    links of the component counts for more than one.
    """
    component = {link: None}
    new = [link]
    crossings = 0  # most flows cross two links of the component
    while new:
        flows = new.pop().flows
        crossings += len(flows)
        for flow in flows:
            if flow.shared_links > 1:
                reached = [other for other in flow.route.links if len(other.flows) > 1 and other not in component]
                component.update(dict.fromkeys(reached))
                new += reached
        if len(component) > 1 and crossings >= 2 * many:
            return None
    return tuple(component)
