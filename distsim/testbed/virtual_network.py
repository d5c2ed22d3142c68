"""The links between ranks on a virtual clock: max-min fair flows, as in `distsim.network`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from distsim.cluster import Cluster, LinkName
from distsim.network.fairness import max_min_rates

T = TypeVar("T")
DONE = 1e-15  # a flow is over when its remaining time is at most this share of `now`


@dataclass(eq=False)  # compared by identity
class _Flow(Generic[T]):
    what: T
    path: tuple[LinkName, ...]
    connection: Hashable
    opens_seconds: float  # when its latency is over
    remaining: float
    rate: float = 0.0


@dataclass
class VirtualNetwork(Generic[T]):
    """The flows in flight. `advance` moves the clock.

    >>> network = VirtualNetwork(Cluster(workers=2, bandwidth="1 MB/s", latency="1 ms"))
    >>> network.start("hello", 0, 1, 1000)
    >>> round(network.next_seconds(), 9)
    0.001
    >>> network.advance(0.001), round(network.next_seconds(), 9)
    ([], 0.002)
    >>> network.advance(0.002)
    ['hello']
    """

    cluster: Cluster
    now: float = 0.0
    _flows: list[_Flow[T]] = field(default_factory=list)
    _capacities: dict[LinkName, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._capacities = self.cluster.capacities(self.cluster.workers)

    def start(self, what: T, source: int, target: int, num_bytes: int, connection: Hashable = None) -> None:
        """Starts a transfer now. The bytes of one connection arrive one transfer after the other, as with TCP.

        connection: by default, one of its own.
        """
        path, latency = self.cluster.route(source, target)
        connection = object() if connection is None else connection
        self._flows.append(_Flow(what, path, connection, self.now + latency, float(num_bytes)))
        self._share()

    def next_seconds(self) -> float:
        """The time of the next event if no transfer is started; infinity if no flow is in flight."""
        return min((self._due(flow) for flow in self._flows), default=float("inf"))

    def advance(self, to_seconds: float) -> list[T]:
        """Moves the clock to at most `next_seconds`, and returns the transfers that are over, in order of start."""
        for flow in self._flows:
            flow.remaining -= flow.rate * (to_seconds - self.now)
        self.now = to_seconds
        over = [flow for flow in self._moving() if flow.remaining <= flow.rate * self.now * DONE]
        self._flows = [flow for flow in self._flows if flow not in over]
        self._share()
        return [flow.what for flow in over]

    def _open(self, flow: _Flow[T]) -> bool:
        return flow.opens_seconds <= self.now

    def _moving(self) -> list[_Flow[T]]:
        """The open flows that are the first of their connections."""
        first = {flow.connection: flow for flow in reversed(self._flows)}
        return [flow for flow in self._flows if first[flow.connection] is flow and self._open(flow)]

    def _due(self, flow: _Flow[T]) -> float:
        if not self._open(flow):
            return flow.opens_seconds
        return self.now + flow.remaining / flow.rate if flow.rate else float("inf")

    def _share(self) -> None:
        moving = self._moving()
        rates = max_min_rates([flow.path for flow in moving], self._capacities)
        for flow, rate in zip(moving, rates, strict=True):
            flow.rate = rate
