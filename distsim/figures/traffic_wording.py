"""How the figures of traffic name links, and tell the bytes of a run."""

from __future__ import annotations

import numpy as np

from distsim.cluster import LinkName
from distsim.figures.wording import counted
from distsim.link_traffic import ended_count, why_none
from distsim.trace import Trace
from distsim.units import show


def sentence(trace: Trace, carried: dict[LinkName, float], total: float) -> str:
    """The bytes of a run, and its busiest link. carried: the bytes of every NIC's links. total: of all transfers."""
    transfers = ended_count(trace)
    if not transfers:
        return nothing_drawn(trace)
    sent = f"{show(total, 'byte')} in {counted(transfers, 'transfer')}"
    over_nics = sum(carried.values()) / 2
    if not over_nics:
        return f"{sent}, all of them inside nodes: no NIC carries anything."
    if not np.isclose(total, over_nics):
        sent += f", {show(total - over_nics, 'byte')} of them inside nodes"
    link, most = max(carried.items(), key=lambda item: item[1])
    mean = 2 * over_nics / len(carried)
    times = "as much as" if np.isclose(most, mean) else f"{most / mean:.3g} times"
    return f"{sent}; the busiest link, the {link_name(trace, link)}, carries {show(most, 'byte')}, {times} the mean."


def nothing_drawn(trace: Trace) -> str:
    """The sentence for a run without transfers."""
    reason = why_none(trace)
    return f"{reason[0].upper()}{reason[1:]}, so no bytes are drawn."


def nic_name(trace: Trace, host: int) -> str:
    """The owner of the NIC that `host` uses: a worker, a server, or a node whose workers share a NIC."""
    cluster = trace.scenario.cluster if "scenario" in trace.metadata else None
    if cluster and cluster.nodes and cluster.nodes.nic_per == "node" and host < trace.workers:
        return f"node {cluster.node_of(host)}"
    return trace.lane(host)


def link_name(trace: Trace, link: LinkName) -> str:
    """The name of a link: its direction and its owner.

    >>> import distsim
    >>> link_name(distsim.simulate(distsim.example("synchronous_ring")), ("up", 2))
    'up-link of worker 2'
    """
    direction, host = link
    return f"{direction}-link of {trace.lane(host) if direction.startswith('fast') else nic_name(trace, host)}"
