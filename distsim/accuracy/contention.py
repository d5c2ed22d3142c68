"""Contention: transfers that share links, on the worked examples of eduWRENCH.

Source: eduWRENCH, pedagogic module A.3.1, Networking fundamentals, contention (wrench.isi.edu). Every route has a
latency of 200 us. The link out of B and the one into B carry 30 MB/s, the links out of A and into C 40 MB/s.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from distsim.accuracy.claim import Claim, exactly
from distsim.network import Network

MB = 1e6
LATENCY = 200e-6
LINKS = {"out of A": 40 * MB, "out of B": 30 * MB, "out of D": 100 * MB, "into B": 30 * MB, "into C": 40 * MB}
LINKS |= {"shared": 100 * MB}


@dataclass(frozen=True)
class Flow:
    """links: crossed on the way. seconds: the expression for its end. printed: the source's digits of it."""

    name: str
    links: tuple[str, ...]
    num_bytes: float
    seconds: float
    printed: str


def _from_a(megabytes: int, seconds: float, printed: str) -> Flow:
    return Flow(f"{megabytes} MB A → C", ("out of A", "into C"), megabytes * MB, seconds, printed)


def _from_b(megabytes: int, seconds: float, printed: str) -> Flow:
    return Flow(f"{megabytes} MB B → C", ("out of B", "into C"), megabytes * MB, seconds, printed)


EXAMPLES = (
    (_from_a(100, LATENCY + 100 / 20, "5.0002"), _from_b(100, LATENCY + 100 / 20, "5.0002")),
    (_from_a(50, LATENCY + 50 / 20, "2.5002"), _from_b(100, LATENCY + 50 / 20 + 50 / 30, "4.1668")),
    (_from_a(60, LATENCY + 60 / 20, "3.0002"), _from_b(100, LATENCY + 60 / 20 + 40 / 30, "4.3335")),
    (
        Flow("100 MB A → C", ("out of A", "shared", "into C"), 100 * MB, LATENCY + 100 / 40, "2.5002"),
        Flow("100 MB D → B", ("out of D", "shared", "into B"), 100 * MB, LATENCY + 100 / 30, "3.3335"),
    ),
)


def claims() -> list[Claim]:
    """The end of each transfer; all transfers of an example start at 0."""
    return [
        exactly(beside(flow, flows), flow.seconds, end)
        for flows in EXAMPLES
        for flow, end in zip(flows, ends_seconds(flows), strict=True)
    ]


def beside(flow: Flow, flows: Sequence[Flow]) -> str:
    """The flow and the others of its example."""
    return f"{flow.name} beside {', '.join(other.name for other in flows if other is not flow)}"


def ends_seconds(flows: Sequence[Flow]) -> list[float]:
    """The simulated end of each."""
    environment = simpy.Environment()
    network = Network(environment, dict(LINKS))
    ends = [float("nan")] * len(flows)

    def carry(number: int, flow: Flow) -> Generator[Any, Any, None]:
        yield network.transfer(flow.links, flow.num_bytes, LATENCY)
        ends[number] = float(environment.now)

    for number, flow in enumerate(flows):
        environment.process(carry(number, flow))
    environment.run()
    return ends
