"""Flows on a SimPy clock: whenever flows join or leave, the flows that share links with them get new rates.

All changes of one instant are settled together, and only in the part of the network that they affect. There are
four cases, from cheap to costly:

alone        a flow that shares none of its links runs at the capacity of its narrowest link.
one link     flows that share one link and no other, such as those to a server, divide its capacity.
component    a flow that shares several of its links couples them. Coupled links form a connected component, which is
             filled progressively.
many         as soon as a component has many flows, all flows of the network are kept in columns, until few are left.
             `flow_columns` tells which of their rates are solved again.

An example: links a = 10, b = 4 and c = 6 bytes/s. Flow 1 crosses a and b, flow 2 only b, flow 3 only c.

>>> environment = simpy.Environment()
>>> network = Network(environment, {"a": 10.0, "b": 4.0, "c": 6.0})
>>> flows = [network.transfer(path, 12.0, latency_seconds=0.0) for path in (("a", "b"), ("b",), ("c",))]
>>> environment.run(until=1.0)
>>> [flow.rate for flow in flows]          # b is the bottleneck of flows 1 and 2; c that of flow 3
[2.0, 2.0, 6.0]
>>> fourth = network.transfer(("a",), 12.0, latency_seconds=0.0)
>>> environment.run(until=1.5)
>>> [flow.rate for flow in (*flows, fourth)]    # flow 1 couples a and b: b is filled first, a has 10 - 2 left
[2.0, 2.0, 6.0, 8.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from heapq import heappop
from operator import attrgetter
from typing import Any

import simpy

from distsim.network.fairness import bottlenecks
from distsim.network.flow_columns import FlowColumns
from distsim.network.link import OVER, Departure, Flow, Link, Route, component_of

MANY = 64  # flows of a component; fewer are solved faster in Python than in numpy
AFTER_ALL = 2  # SimPy's priorities are 0 (urgent) and 1 (normal): events with 2 are the last of an instant


class Network:
    """Flows over links of given capacity on a SimPy clock.

    >>> environment = simpy.Environment()
    >>> network = Network(environment, {"up 0": 1e6, "up 1": 1e6, "down 2": 1e6})
    >>> first, second = (network.transfer(("up 0", "down 2"), 1e6, 0.5), network.transfer(("up 1", "down 2"), 5e5, 0.5))
    >>> environment.run(first)
    >>> round(environment.now, 9)
    2.0
    """

    def __init__(self, environment: simpy.Environment, capacities: Mapping[Any, float]) -> None:
        self.environment = environment
        self._ends: list[tuple[float, int, Link]] = []  # a heap of links by end_seconds; some entries are outdated
        self._links = {name: Link(capacities[name], number, self._ends) for number, name in enumerate(capacities)}
        self._routes: dict[tuple[Hashable, ...], Route] = {}
        self._joined = 0  # flows so far
        self._coupled = 0  # flows that share several of their links, and so couple them
        self._changed: dict[Link, None] = {}  # links whose flows need new rates
        self._settling = False
        self._departure: Departure | None = None  # the latest; flows that start in the same instant may join it
        self._timer: simpy.Event | None = None
        self._timer_seconds = math.inf
        self._joins = self._join_after_the_latency
        self._columns: FlowColumns | None = None  # where all flows are kept as long as they are many

    def transfer(self, path: tuple[Hashable, ...], num_bytes: float, latency_seconds: float) -> Flow:
        """Sends `num_bytes` over the links of `path`; the flow it returns is an event."""
        flow = self.flow(path, num_bytes, latency_seconds)
        self.start(flow)
        return flow

    def flow(self, path: tuple[Hashable, ...], num_bytes: float, latency_seconds: float) -> Flow:
        """A transfer that begins when it is given to `start`."""
        route = self._routes.get(path)
        if route is None:
            route = self._routes[path] = self.route(path)
        return Flow(self.environment, route, num_bytes, latency_seconds)

    def route(self, path: tuple[Hashable, ...]) -> Route:
        """A route over these links. A caller that sends often over a route keeps it, and makes each `Flow` of it."""
        return Route.of(tuple(self._links[name] for name in path))

    def start(self, flow: Flow) -> None:
        """The flow begins: it waits its latency, then it joins its links."""
        now, latency = self.environment.now, flow.latency_seconds
        flow.start_seconds = now
        if latency <= 0.0:
            self._join(flow)
            return
        latest = self._departure
        if latest is not None and latest.start_seconds == now and latest.latency_seconds == latency:
            latest.flows.append(flow)
        else:
            self._departure = Departure(flow, self._joins)
            self.environment.schedule(self._departure, delay=latency)

    def abort(self, flow: Flow) -> None:
        """Takes a flow off the network; its event never happens."""
        flow.aborted = True
        if flow.number:
            if flow.bottleneck:
                flow.bottleneck.release(flow)
            self._leave(flow)
            self._settle_at_the_end_of_this_instant(self.environment.now)

    def _join_after_the_latency(self, departure: simpy.Event) -> None:
        flows: list[Flow] = departure.flows  # type: ignore[attr-defined] # it is a Departure
        if departure is self._departure:
            self._departure = None
        if len(flows) == 1:
            self._join(flows[0])
        else:
            self._join_together(flows)
            self._settle_at_the_end_of_this_instant(self.environment.now)

    def _join_together(self, flows: list[Flow]) -> None:
        """Several flows join, and nothing is settled before the last of them has joined."""
        settling, self._settling = self._settling, True
        for flow in flows:
            self._join(flow)
        self._settling = settling

    def _join(self, flow: Flow) -> None:
        if flow.aborted:
            return
        if flow.num_bytes <= 0.0:
            flow.succeed()
            return
        now, limit = self.environment.now, flow.route.limit
        self._joined += 1
        flow.number = self._joined
        if self._columns is not None:
            self._columns.join(flow)
            self._settle_at_the_end_of_this_instant(now)
            return
        for link in flow.route.links:
            flows = link.flows
            if flows:
                self._changed[link] = None
                flow.shared_links += 1
                if len(flows) == 1:
                    (other,) = flows
                    other.shared_links += 1
                    self._coupled += other.shared_links == 2
            if not flows or limit < link.lowest:
                link.lowest = limit
            flows[flow] = None
        if flow.shared_links:
            self._coupled += flow.shared_links > 1
            self._settle_at_the_end_of_this_instant(now)
        else:
            flow.route.narrowest.carry_alone(now, flow)
            self._wake_at_the_next_end(now)

    def _leave(self, flow: Flow) -> None:
        flow.number = 0
        if self._columns is not None:
            self._columns.leave(flow)
            return
        self._coupled -= flow.shared_links > 1
        for link in flow.route.links:
            flows = link.flows
            del flows[flow]
            if flows:
                self._changed[link] = None
                if len(flows) == 1:
                    (other,) = flows
                    other.shared_links -= 1
                    self._coupled -= other.shared_links == 1
                    if other.shared_links:
                        self._changed.update(dict.fromkeys(other.route.links))

    def _settle_at_the_end_of_this_instant(self, now: float) -> None:
        if self._settling:
            return
        if not (self._changed if self._columns is None else self._columns.changed):
            self._wake_at_the_next_end(now)
        elif self.environment.peek() > now:
            self._settle(now)  # this is the end
        else:
            self._settling = True
            after_all(self.environment, lambda _: self._settle(now))

    def _settle(self, now: float) -> None:
        self._settling = False
        if self._columns is not None and len(self._columns) < MANY // 2:
            self._keep_by_link(now, self._columns)
        if self._columns is None:
            self._settle_links(now)
        if self._columns is not None:
            self._columns.share_out(now)
        self._wake_at_the_next_end(now)

    def _keep_in_columns(self, now: float) -> FlowColumns:
        """All flows leave their links, and join columns."""
        columns = FlowColumns(self._links.values())
        for link in self._links.values():
            for flow in link.flows:
                if flow.columns is None:
                    if flow.bottleneck:
                        flow.bottleneck.let_go(now, flow)
                    flow.shared_links = 0
                    columns.join(flow)
            link.flows.clear()
        self._changed.clear()
        self._coupled = 0
        return columns

    def _keep_by_link(self, now: float, columns: FlowColumns) -> None:
        """All flows leave the columns, and join their links."""
        self._columns = None
        self._join_together(columns.leave_all(now))

    def _settle_links(self, now: float) -> None:
        changed = self._changed
        while changed:
            link, _ = changed.popitem()
            if len(link.flows) > 1:
                component = component_of(link, MANY) if self._coupled else ()
                if component is None:
                    self._columns = self._keep_in_columns(now)
                elif len(component) > 1:
                    self._fill(now, component)
                    for filled in component:
                        changed.pop(filled, None)
                else:
                    self._share_out(now, link)
            else:
                for flow in link.flows:
                    if not flow.shared_links:
                        self._run_alone(now, flow)

    def _run_alone(self, now: float, flow: Flow) -> None:
        """A flow that shares no link is limited by its narrowest link, or by an equally narrow present bottleneck."""
        route, bottleneck = flow.route, flow.bottleneck
        if bottleneck is None or bottleneck.capacity > route.limit:
            bottleneck = route.narrowest
            bottleneck.limit_flow(now, flow)
        if bottleneck.rate != route.limit:
            bottleneck.set_rate(now, route.limit)

    def _share_out(self, now: float, link: Link) -> None:
        """Flows share only this link: the slow ones run at their limits, the others divide the rest of the capacity."""
        left, sharing, share = link.capacity, len(link.flows), link.capacity / len(link.flows)
        if share > link.lowest:
            for flow in sorted(link.flows, key=attrgetter("route.limit")):
                if flow.route.limit >= share:
                    break
                self._run_alone(now, flow)
                left, sharing = left - flow.route.limit, sharing - 1
                share = left / sharing if sharing else math.inf
        if link.bottlenecked < sharing:
            for flow in link.flows:
                if flow.bottleneck is not link and flow.route.limit >= share:
                    link.limit_flow(now, flow)
        if sharing:
            link.set_rate(now, share)

    def _fill(self, now: float, component: tuple[Link, ...]) -> None:
        """Fills a connected component of links progressively."""
        flows = list(dict.fromkeys(flow for link in component for flow in link.flows))
        paths = [flow.route.links for flow in flows]
        for link, share, held in bottlenecks(paths, {link: link.capacity for path in paths for link in path}):
            for number in held:
                if flows[number].bottleneck is not link:
                    link.limit_flow(now, flows[number])
            link.set_rate(now, share)

    def _wake_at_the_next_end(self, now: float) -> None:
        if self._columns is None:
            ends = self._ends
            while ends and ends[0][0] != ends[0][2].end_seconds:
                heappop(ends)
            next_end = ends[0][0] if ends else math.inf
        else:
            next_end = self._columns.next_end
        if next_end < (math.inf if self._timer is None else self._timer_seconds):
            self._timer_seconds = next_end
            self._timer = self.environment.timeout(max(self._timer_seconds - now, 0.0))
            self._timer.callbacks.append(self._end_flows)

    def _end_flows(self, timer: simpy.Event) -> None:
        if timer is not self._timer:
            return  # an earlier timer was set since
        self._timer = None
        now = self.environment.now
        ended = self._ended_by_link(now) if self._columns is None else self._columns.ended(now)
        if not ended:
            if not self._settling:  # otherwise the next end is not known yet
                self._wake_at_the_next_end(now)
            return
        if len(ended) > 1:
            ended.sort(key=_number)
        for flow in ended:
            self._leave(flow)
        if len(ended) > 1:
            self._settle_at_the_end_of_this_instant(now)
            event = self.environment.event()
            event.callbacks += [flow.happen for flow in ended]
            event.succeed()
            return
        settling, self._settling = self._settling, True
        try:
            ended[0].happen(timer)
        finally:
            self._settling = settling
            self._settle_at_the_end_of_this_instant(now)

    def _ended_by_link(self, now: float) -> list[Flow]:
        """The flows that links release now."""
        ends, ended = self._ends, []
        soon = now + OVER * now
        while ends and ends[0][0] <= soon:
            end_seconds, _, link = heappop(ends)
            if end_seconds == link.end_seconds:
                ended += link.end(now)
        return ended


_number = attrgetter("number")


def after_all(environment: simpy.Environment, callback: Callable[[simpy.Event], None]) -> None:
    """Calls back after all other events of this instant."""
    event = environment.event()
    event._ok, event._value = True, None
    event.callbacks.append(callback)
    environment.schedule(event, priority=AFTER_ALL)  # type: ignore[arg-type]
