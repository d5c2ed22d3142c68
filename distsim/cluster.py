"""The machines and their network: the `[cluster]` table.

Every host has one full-duplex NIC, an up-link and a down-link; the switch between them is not a bottleneck.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from distsim.compute import rank_keys
from distsim.description import Description
from distsim.units import BytesPerSecond, Seconds


class Nic(Description):
    """An exception to the cluster's bandwidth for one NIC; a direction left out keeps the cluster's."""

    up_bytes_per_second: BytesPerSecond | None = Field(default=None, alias="up")
    down_bytes_per_second: BytesPerSecond | None = Field(default=None, alias="down")


class Nodes(Description):
    """A fast tier inside a node: `per_node` workers share it, and share one NIC or have one each."""

    per_node: Annotated[int, Field(ge=1)]
    bandwidth_bytes_per_second: BytesPerSecond = Field(alias="bandwidth")
    latency_seconds: Seconds = Field(alias="latency")
    nic_per: Literal["node", "worker"] = "worker"


class Cluster(Description):
    """The `[cluster]` table.

    >>> cluster = Cluster(workers=4, bandwidth="1 Gbit/s", latency="100 us", nic={2: {"up": "100 Mbit/s"}})
    >>> cluster.up(2), cluster.down(2), cluster.latency_seconds
    (12500000.0, 125000000.0, 0.0001)
    """

    workers: Annotated[int, Field(ge=1)]
    bandwidth_bytes_per_second: BytesPerSecond = Field(alias="bandwidth")
    latency_seconds: Seconds = Field(alias="latency")
    nic: Annotated[dict[int | str, Nic], BeforeValidator(rank_keys)] = Field(default={})
    nodes: Nodes | None = None

    def check_nics(self) -> None:
        """Raises ValueError where an exception names a host that the cluster does not have."""
        for host in self.nic:
            if host != "server" and (isinstance(host, str) or not 0 <= host < self.workers):
                raise ValueError(
                    f"cluster.nic names {host!r}, but workers count 0 to {self.workers - 1}. "
                    'Cure: name one of those, or "server"'
                )

    def _nic(self, host: int) -> Nic:
        return self.nic.get(host if host < self.workers else "server", Nic())

    def up(self, host: int) -> float:
        """Bytes per second that this host's NIC sends; workers are hosts 0 to workers - 1, servers follow."""
        return self._nic(host).up_bytes_per_second or self.bandwidth_bytes_per_second

    def down(self, host: int) -> float:
        """Bytes per second that this host's NIC receives."""
        return self._nic(host).down_bytes_per_second or self.bandwidth_bytes_per_second
