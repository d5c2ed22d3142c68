"""What a collective of the table costs on equal links, by its closed form in `theory.collectives`."""

from __future__ import annotations

from typing import Any

from distsim.cluster import Cluster
from distsim.collectives import Collective, Topology
from distsim.theory.collectives import CLOSED_FORMS


def collective_seconds(collective: Collective, num_bytes: float, cluster: Cluster, topology: Topology) -> float:
    """Seconds of one call on the cluster's links, all equal. num_bytes: of each worker.

    >>> from distsim.collectives import COLLECTIVES
    >>> cluster = Cluster(workers=4, bandwidth="1 GB/s", latency="0 s")
    >>> collective_seconds(COLLECTIVES["ring"], 1e9, cluster, Topology(workers=4))
    1.5
    """
    more: dict[str, Any] = {}
    if collective.has_servers:
        more |= {"servers": topology.servers, "colocated": topology.colocated}
    if collective.needs_nodes:
        nodes = cluster.nodes
        assert nodes is not None, "checked when the scenario was read"
        more |= {
            "per_node": topology.per_node, "node_bytes_per_second": nodes.bandwidth_bytes_per_second,
            "node_latency_seconds": nodes.latency_seconds, "nic_per": nodes.nic_per,
        }  # fmt: skip
    links = cluster.bandwidth_bytes_per_second, cluster.latency_seconds
    return CLOSED_FORMS[collective.kind](num_bytes, topology.workers, *links, **more)
