"""What every story needs: the clock and the hosts' NICs on the network."""

from __future__ import annotations

from collections.abc import Hashable

import simpy

from distsim.cluster import Cluster
from distsim.network import Flow, Network


class Stage:
    """The hosts of a cluster on one SimPy clock; host h sends over link ("up", h) and receives over ("down", h)."""

    def __init__(self, cluster: Cluster, hosts: int) -> None:
        self.cluster = cluster
        self.environment = simpy.Environment()
        ups: dict[Hashable, float] = {("up", host): cluster.up(host) for host in range(hosts)}
        downs: dict[Hashable, float] = {("down", host): cluster.down(host) for host in range(hosts)}
        self.network = Network(self.environment, ups | downs)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return float(self.environment.now)

    def send(self, source: int, target: int, num_bytes: float, latency_seconds: float | None = None) -> Flow:
        """Bytes from one host's NIC to another's; the latency is the cluster's unless given."""
        latency = self.cluster.latency_seconds if latency_seconds is None else latency_seconds
        return self.network.transfer((("up", source), ("down", target)), num_bytes, latency)
