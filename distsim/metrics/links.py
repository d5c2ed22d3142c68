"""Bytes on each host's links."""

from __future__ import annotations

import numpy as np

from distsim.arrays import Floats
from distsim.link_traffic import carried_by_link, hosts
from distsim.trace import Trace


def bytes_per_link(trace: Trace) -> tuple[Floats, Floats] | None:
    """Bytes on each host's up-link and down-link by the last update, each of shape (hosts,).

    None where the transfers were not observed (a backend's own all-reduce). A colocated server uses the links of its
    worker's host. Where the workers of a node share a NIC, its bytes count for the node's first worker. Bytes inside a
    node or a host cross no NIC and do not count.
    """
    trace.check_whole("bytes_per_link(trace)")
    if not len(trace.transfers):
        return None
    carried = carried_by_link(trace)
    up, down = (
        np.array([carried.get((direction, host), 0.0) for host in range(hosts(trace))]) for direction in ("up", "down")
    )
    return up, down


def busiest_link_bytes(trace: Trace) -> float | None:
    """The most bytes that one link carried; None where the transfers were not observed."""
    links = bytes_per_link(trace)
    return None if links is None else float(max(links[0].max(), links[1].max()))
