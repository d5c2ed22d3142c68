"""A network of links in the fluid model: transfers wait the latency, then share links max-min fairly.

Every transfer crosses its source's up-link and its target's down-link. Rates change when a transfer joins or
leaves; all changes of one instant are settled together, by one solution. The model is SimGrid's (Casanova et al.
2014) in its plain form; max-min fairness is Bertsekas and Gallager, Data Networks, section 6.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import simpy

AFTER_ALL = 2  # SimPy's priorities are 0 (urgent) and 1 (normal): settle when the instant has nothing left to say
OVER = 1e-15  # a flow is over when what remains takes at most this share of the time now


def max_min_rates(paths: Sequence[Sequence[Hashable]], capacities: Mapping[Any, float]) -> list[float]:
    """The max-min fair rate of each flow, by progressive filling.

    paths: the links that each flow crosses, at least one each. capacities: of the links, any unit; rates are in it.

    >>> max_min_rates([["a"], ["a", "b"], ["b"]], {"a": 10.0, "b": 4.0})
    [8.0, 2.0, 2.0]
    """
    return _star_rates(paths, capacities) or _rates(paths, capacities)


def _star_rates(paths: Sequence[Sequence[Hashable]], capacities: Mapping[Any, float]) -> list[float] | None:
    """The rates where each flow shares one of its links at most, as with a server; None where some share more."""
    counts: dict[Hashable, int] = {}
    for path in paths:
        for link in path:
            counts[link] = counts.get(link, 0) + 1
    rates: list[float] = []  # for now the limits that the flows' own links set
    members: dict[Hashable, list[int]] = {}  # by shared link
    for flow, path in enumerate(paths):
        limit, shared = math.inf, None
        for link in path:
            if counts[link] == 1:
                limit = min(limit, capacities[link])
            elif shared is None:
                shared = link
                members.setdefault(link, []).append(flow)
            else:
                return None
        rates.append(limit)
    for link, flows in members.items():
        left, count = capacities[link], len(flows)
        share = left / count
        if share > min([rates[flow] for flow in flows]):
            # The slowest keep to their own links; the others divide what they leave.
            for limit in sorted([rates[flow] for flow in flows]):
                if limit >= share:
                    break
                left, count = max(left - limit, 0.0), count - 1
                share = left / count if count else math.inf
        for flow in flows:
            rates[flow] = min(rates[flow], share)
    return rates


def _rates(paths: Sequence[Sequence[Hashable]], capacities: Mapping[Any, float]) -> list[float]:
    rates = [math.inf] * len(paths)
    flows_of: dict[Hashable, list[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            flows_of.setdefault(link, []).append(flow)
    left: dict[Hashable, float] = {link: capacities[link] for link in flows_of}
    open_flows = {link: len(flows) for link, flows in flows_of.items()}
    while left:
        # The link with the smallest equal share holds its flows to that share; the others divide what they leave.
        bottleneck = min(left, key=lambda link: left[link] / open_flows[link])
        share = left[bottleneck] / open_flows[bottleneck]
        for flow in flows_of[bottleneck]:
            if rates[flow] != math.inf:
                continue
            rates[flow] = share
            for link in paths[flow]:
                open_flows[link] -= 1
                if open_flows[link]:
                    left[link] = max(left[link] - share, 0.0)
                else:
                    del left[link]
    return rates


class Flow(simpy.Event):
    """A transfer on its way; as an event it happens when the last byte has arrived.

    start_seconds: when it began to wait the latency.
    """

    __slots__ = ("path", "rate", "remaining", "start_seconds")

    def __init__(self, environment: simpy.Environment, path: tuple[Hashable, ...], num_bytes: float) -> None:
        super().__init__(environment)
        self.path = path
        self.remaining = num_bytes
        self.rate = 0.0
        self.start_seconds = environment.now


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
        self.capacities = capacities
        self._flows: list[Flow] = []
        self._settled_seconds = 0.0
        self._settling = False
        self._timer: simpy.Event | None = None

    def transfer(self, path: tuple[Hashable, ...], num_bytes: float, latency_seconds: float) -> Flow:
        """Sends `num_bytes` over the links of `path`; the flow it returns is an event."""
        flow = Flow(self.environment, path, num_bytes)
        if latency_seconds > 0:
            self.environment.timeout(latency_seconds).callbacks.append(lambda _: self._join(flow))
        else:
            self._join(flow)
        return flow

    def abort(self, flow: Flow) -> None:
        """Takes a flow off the network; its event never happens."""
        flow.remaining = math.nan
        if flow in self._flows:
            self._advance()
            self._flows.remove(flow)
            self._settle_at_the_end_of_this_instant()

    def _join(self, flow: Flow) -> None:
        if math.isnan(flow.remaining):
            return  # aborted while it waited the latency
        if flow.remaining <= 0.0:
            flow.succeed()
            return
        self._advance()
        self._flows.append(flow)
        self._settle_at_the_end_of_this_instant()

    def _advance(self) -> None:
        elapsed = self.environment.now - self._settled_seconds
        if elapsed > 0.0:
            for flow in self._flows:
                flow.remaining -= flow.rate * elapsed
            self._settled_seconds = self.environment.now

    def _settle_at_the_end_of_this_instant(self) -> None:
        if self._settling:
            return
        if self.environment.peek() > self.environment.now:
            self._settle()  # this is the end
        else:
            self._settling = True
            settle = self.environment.event()
            settle._ok, settle._value = True, None
            settle.callbacks.append(lambda _: self._settle())
            self.environment.schedule(settle, priority=AFTER_ALL)  # type: ignore[arg-type]

    def _settle(self) -> None:
        self._settling = False
        self._advance()
        rates = max_min_rates([flow.path for flow in self._flows], self.capacities)
        for flow, rate in zip(self._flows, rates, strict=True):
            flow.rate = rate
        self._wake_at_the_next_end()

    def _wake_at_the_next_end(self) -> None:
        self._timer = None
        if self._flows:
            soonest = min([flow.remaining / flow.rate for flow in self._flows])
            self._timer = self.environment.timeout(max(soonest, 0.0))
            self._timer.callbacks.append(self._end_flows)

    def _end_flows(self, timer: simpy.Event) -> None:
        if timer is not self._timer:
            return  # rates have changed since this timer was set
        self._advance()
        tolerance = OVER * self.environment.now
        ended = [flow for flow in self._flows if flow.remaining <= flow.rate * tolerance]
        if ended:
            self._flows = [flow for flow in self._flows if flow.remaining > flow.rate * tolerance]
            self._settle_at_the_end_of_this_instant()
            for flow in ended:
                flow.succeed()
        else:
            self._wake_at_the_next_end()
