"""The links between ranks: transfers wait the latency, then share links max-min fairly (as in `distsim.network`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from distsim.cluster import Cluster, Link
from distsim.network.fairness import max_min_rates

T = TypeVar("T")
DONE = 1e-15  # a flow is over when what remains would take less than this share of now (design, timing semantics)


@dataclass(eq=False)  # what it carries need not be comparable
class _Flow(Generic[T]):
    what: T
    path: tuple[Link, ...]
    opens_seconds: float  # the latency is over
    remaining: float
    rate: float = 0.0


@dataclass
class Wire(Generic[T]):
    """The flows that are on their way. Its clock is moved by `advance`.

    >>> wire = Wire(Cluster(workers=2, bandwidth="1 MB/s", latency="1 ms"))
    >>> wire.start("hello", 0, 1, 1000)
    >>> round(wire.next_seconds(), 9)
    0.001
    >>> wire.advance(0.001), round(wire.next_seconds(), 9)
    ([], 0.002)
    >>> wire.advance(0.002)
    ['hello']
    """

    cluster: Cluster
    now: float = 0.0
    _flows: list[_Flow[T]] = field(default_factory=list)
    _capacities: dict[Link, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._capacities = self.cluster.capacities(self.cluster.workers)

    def start(self, what: T, source: int, target: int, num_bytes: int) -> None:
        """A transfer begins now."""
        path, latency = self.cluster.route(source, target)
        self._flows.append(_Flow(what, path, self.now + latency, float(num_bytes)))
        self._share()

    def next_seconds(self) -> float:
        """When something next happens if nothing else is started; infinity where nothing is on its way."""
        return min((self._due(flow) for flow in self._flows), default=float("inf"))

    def advance(self, to_seconds: float) -> list[T]:
        """Moves the clock, no further than `next_seconds`; what has arrived by then, in the order of its start."""
        for flow in self._flows:
            flow.remaining -= flow.rate * (to_seconds - self.now)
        self.now = to_seconds
        over = [flow for flow in self._flows if self._open(flow) and flow.remaining <= flow.rate * self.now * DONE]
        self._flows = [flow for flow in self._flows if flow not in over]
        self._share()
        return [flow.what for flow in over]

    def _open(self, flow: _Flow[T]) -> bool:
        return flow.opens_seconds <= self.now

    def _due(self, flow: _Flow[T]) -> float:
        if not self._open(flow):
            return flow.opens_seconds
        return self.now + flow.remaining / flow.rate

    def _share(self) -> None:
        open_flows = [flow for flow in self._flows if self._open(flow)]
        rates = max_min_rates([flow.path for flow in open_flows], self._capacities)
        for flow, rate in zip(open_flows, rates, strict=True):
            flow.rate = rate
