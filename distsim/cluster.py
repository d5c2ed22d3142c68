"""The machines and their network: the `[cluster]` table.

Every host has one full-duplex NIC, an up-link and a down-link; the switch between them is not a bottleneck.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from distsim.arrays import Floats, Indices
from distsim.units import BytesPerSecond, Seconds
from distsim.validated_table import Count, ValidatedTable, rank_keys

DIRECTIONS = ("up", "down", "fast up", "fast down")
LinkName = tuple[str, int]  # ("up" or "down", the host whose NIC it is), or "fast up", "fast down" inside a node


class Nic(ValidatedTable):
    """An exception to the cluster's bandwidth for one NIC; a direction left out keeps the cluster's."""

    up_bytes_per_second: BytesPerSecond | None = Field(default=None, alias="up")
    down_bytes_per_second: BytesPerSecond | None = Field(default=None, alias="down")


class Nodes(ValidatedTable):
    """A fast tier inside a node: `per_node` workers share it, and share one NIC or have one each."""

    per_node: Count = Field(examples=[4])
    bandwidth_bytes_per_second: BytesPerSecond = Field(alias="bandwidth", examples=["300 GB/s"])
    latency_seconds: Seconds = Field(alias="latency", examples=["2 us"])
    nic_per: Literal["node", "worker"] = "worker"


class Cluster(ValidatedTable):
    """The `[cluster]` table.

    >>> cluster = Cluster(workers=4, bandwidth="1 Gbit/s", latency="100 us", nic={2: {"up": "100 Mbit/s"}})
    >>> cluster.up(2), cluster.down(2), cluster.latency_seconds
    (12500000.0, 125000000.0, 0.0001)
    """

    workers: Annotated[int, Field(ge=1, le=10**6, examples=[4])]
    bandwidth_bytes_per_second: BytesPerSecond = Field(alias="bandwidth", examples=["10 Gbit/s"])
    latency_seconds: Seconds = Field(alias="latency", examples=["50 us"])
    nic: Annotated[dict[int | str, Nic], BeforeValidator(rank_keys)] = Field(default={})
    nodes: Nodes | None = None

    def check_nics(self) -> None:
        """Raises ValueError if an exception names a host that the cluster does not have."""
        for host in self.nic:
            if host != "server" and (isinstance(host, str) or not 0 <= host < self.workers):
                raise ValueError(
                    f"cluster.nic names {host!r}, but workers count 0 to {self.workers - 1}. "
                    'Cure: name one of those, or "server"'
                )
            if isinstance(host, int) and self.nic_of(host) != host:
                raise ValueError(
                    f"cluster.nic names worker {host}, which shares the NIC of its node's first worker. "
                    f"Cure: name worker {self.nic_of(host)}"
                )

    def _nic(self, host: int) -> Nic:
        return self.nic.get(self.nic_of(host) if host < self.workers else "server", Nic())

    def node_of(self, host: int) -> int | None:
        """The node of a worker; None for a server, or without nodes."""
        return host // self.nodes.per_node if self.nodes and host < self.workers else None

    def nic_of(self, host: int) -> int:
        """The host that names the NIC of `host`: the first host of a node that shares one NIC, otherwise `host`."""
        node = self.node_of(host)
        return (
            host if node is None or self.nodes is None or self.nodes.nic_per == "worker" else node * self.nodes.per_node
        )

    def capacities(self, hosts: int) -> dict[LinkName, float]:
        """Bytes per second of every link between `hosts` hosts, by the names that `route` uses."""
        nics = {self.nic_of(host) for host in range(hosts)}
        links: dict[LinkName, float] = {("up", nic): self.up(nic) for nic in nics}
        links |= {("down", nic): self.down(nic) for nic in nics}
        if self.nodes:
            for direction in ("fast up", "fast down"):
                links |= {(direction, worker): self.nodes.bandwidth_bytes_per_second for worker in range(self.workers)}
        return links

    def route(self, source: int, target: int) -> tuple[tuple[LinkName, ...], float]:
        """The links from one host to another, and the latency in seconds; inside a node only the fast tier is used.

        >>> Cluster(workers=4, bandwidth="1 GB/s", latency="1 ms").route(0, 3)
        ((('up', 0), ('down', 3)), 0.001)
        """
        node = self.node_of(source)
        if self.nodes and node is not None and node == self.node_of(target):
            return (("fast up", source), ("fast down", target)), self.nodes.latency_seconds
        return (("up", self.nic_of(source)), ("down", self.nic_of(target))), self.latency_seconds

    def route_numbers(self, source: Indices, target: Indices) -> tuple[Indices, Indices, Floats]:
        """What `route` gives for many pairs of workers: the numbers of the first and last links, and the latencies.

        Numbers are those of `link_name`, and places in `link_capacities`.

        >>> cluster = Cluster(workers=4, bandwidth="1 GB/s", latency="1 ms")
        >>> first, last, _ = cluster.route_numbers(np.array([0]), np.array([3]))
        >>> cluster.link_name(first[0]), cluster.link_name(last[0])
        (('up', 0), ('down', 3))
        """
        up, down, fast_up, fast_down = (way * self.workers for way in range(len(DIRECTIONS)))
        if self.nodes is None:
            return up + source, down + target, np.full(len(source), self.latency_seconds)
        per_node = self.nodes.per_node
        inside = source // per_node == target // per_node
        share = per_node if self.nodes.nic_per == "node" else 1
        first = np.where(inside, fast_up + source, up + source // share * share)
        last = np.where(inside, fast_down + target, down + target // share * share)
        return first, last, np.where(inside, self.nodes.latency_seconds, self.latency_seconds)

    @property
    def link_numbers(self) -> Indices:
        """The numbers of all links of the workers, in the order of `capacities`.

        >>> cluster = Cluster(workers=2, bandwidth="1 GB/s", latency="1 ms")
        >>> [cluster.link_name(number) for number in cluster.link_numbers]
        [('up', 0), ('up', 1), ('down', 0), ('down', 1)]
        """
        workers = np.arange(self.workers, dtype=np.int32)
        if self.nodes is None:
            return np.arange(2 * self.workers, dtype=np.int32)
        nics = workers[:: self.nodes.per_node if self.nodes.nic_per == "node" else 1]
        return np.concatenate([nics, self.workers + nics, 2 * self.workers + workers, 3 * self.workers + workers])

    def link_name(self, number: int) -> LinkName:
        """The name of a link by its number."""
        way, host = divmod(int(number), self.workers)
        return DIRECTIONS[way], host

    @property
    def link_capacities(self) -> Floats:
        """Bytes per second of the workers' links, by their numbers."""
        found = np.full((len(DIRECTIONS), self.workers), self.bandwidth_bytes_per_second)
        for host in self.nic:
            if isinstance(host, int):
                found[:2, host] = self.up(host), self.down(host)
        if self.nodes:
            found[2:] = self.nodes.bandwidth_bytes_per_second
        return found.ravel()

    def up(self, host: int) -> float:
        """Bytes per second that this host's NIC sends; workers are hosts 0 to workers - 1, servers follow."""
        return self._nic(host).up_bytes_per_second or self.bandwidth_bytes_per_second

    def down(self, host: int) -> float:
        """Bytes per second that this host's NIC receives."""
        return self._nic(host).down_bytes_per_second or self.bandwidth_bytes_per_second
