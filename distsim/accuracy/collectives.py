"""Collectives: the closed forms of their costs against schedules simulated on equal links, transfer by transfer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from distsim.accuracy.claim import Claim, all_exactly
from distsim.cluster import Cluster
from distsim.collective_costs import collective_seconds
from distsim.collectives import COLLECTIVES, Collective, Schedule, Topology
from distsim.engine import collective
from distsim.units import write

Pair = tuple[float, float]  # seconds by the closed form, simulated seconds

# (bytes, bytes per second, latency): bandwidth-bound, latency-bound, in between (where the order of arrivals can
# change), no bytes, no latency.
LINKS = ((3e7, 1.25e9, 5e-5), (1e3, 1e9, 1e-2), (1e6, 1e9, 3e-3), (0.0, 1e9, 1e-3), (1e8, 1e9, 0.0))
RANKS = range(1, 18)
SHARDED = (1, 2, 3, 4, 7, 8)  # workers
TWO_TIERS = ((1, 1), (4, 1), (4, 4), (8, 4), (8, 2), (12, 3), (15, 5), (24, 8))  # workers, per node


def claims() -> list[Claim]:
    """Each closed form over many sizes, links and numbers of ranks; the row shows the one that differs most."""
    rows = {row.kind: costs(row) for row in COLLECTIVES.values() if not row.needs_nodes}
    rows |= {"sharded servers": _sharded(colocated=False), "sharded servers, colocated": _sharded(colocated=True)}
    for row in COLLECTIVES.values():
        if row.needs_nodes:
            rows |= {f"{row.kind}, a NIC per worker": _two_tiers(row, "worker")}
            rows |= {f"{row.kind}, a NIC per node": _two_tiers(row, "node")}
    return [_worst(case, pairs) for case, pairs in rows.items()]


def _worst(case: str, pairs: Iterator[Pair]) -> Claim:
    expressions, found = zip(*pairs, strict=True)
    return all_exactly(f"{case}: worst of {len(found)}", expressions, found)


def costs(row: Collective) -> Iterator[Pair]:
    """One collective on all `LINKS` and `RANKS`."""
    for num_bytes, speed, latency in LINKS:
        for ranks in RANKS:
            yield pair(row, num_bytes, _cluster(ranks, speed, latency), Topology(ranks))


def _sharded(colocated: bool) -> Iterator[Pair]:
    """Parameters divided among several servers."""
    num_bytes, speed, latency = 3e7, 1.25e9, 5e-3
    for workers in SHARDED:
        for servers in range(1, workers + 1 if colocated else 2 * workers + 2):
            topology = Topology(workers, servers=servers, colocated=colocated)
            yield pair(COLLECTIVES["parameter_server"], num_bytes, _cluster(workers, speed, latency), topology)


def _two_tiers(row: Collective, nic_per: Literal["worker", "node"]) -> Iterator[Pair]:
    """A collective inside nodes and between them."""
    for num_bytes, fast, latency in ((3e7, 3e10, 5e-5), (1e6, 2e9, 1e-3)):
        for workers, per_node in TWO_TIERS:
            nodes = {
                "per_node": per_node, "bandwidth": write(fast, "byte/second"), "latency": "2 us", "nic_per": nic_per,
            }  # fmt: skip
            cluster = _cluster(workers, 1.25e9, latency, nodes=nodes)
            yield pair(row, num_bytes, cluster, Topology(workers, per_node))


def pair(row: Collective, num_bytes: float, cluster: Cluster, topology: Topology) -> Pair:
    """Seconds of one collective by the closed form and by simulation; num_bytes: of each worker."""
    whole = row.whole_bytes(num_bytes, topology.workers)
    simulated = simulated_seconds(row.schedule(topology), whole, cluster)
    return collective_seconds(row, num_bytes, cluster, topology), simulated


def simulated_seconds(schedule: Schedule, num_bytes: float, cluster: Cluster) -> float:
    """The simulated seconds until the last rank has finished."""
    return max(collective.run(schedule, cluster, num_bytes).ends_seconds)


def _cluster(workers: int, speed: float, latency: float, **more: Any) -> Cluster:
    links = {"bandwidth": write(speed, "byte/second"), "latency": write(latency, "second")}
    return Cluster.model_validate({"workers": workers} | links | more)
