"""Collectives: the closed forms of their costs against schedules simulated on equal links, transfer by transfer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from distsim import collectives
from distsim.accuracy.claim import Claim, all_exactly
from distsim.cluster import Cluster
from distsim.collectives import Schedule
from distsim.engine import collective
from distsim.theory.collectives import (
    all_gather_seconds,
    all_to_all_seconds,
    broadcast_seconds,
    gather_seconds,
    halving_doubling_all_reduce_seconds,
    hierarchical_all_reduce_seconds,
    parameter_server_seconds,
    reduce_scatter_seconds,
    reduce_seconds,
    ring_all_reduce_seconds,
    scatter_seconds,
    tree_all_reduce_seconds,
)
from distsim.units import write

Pair = tuple[float, float]  # seconds by the closed form, simulated seconds

COSTS: dict[str, tuple[Callable[[int], Schedule], Callable[..., float]]] = {
    "ring": (collectives.ring, ring_all_reduce_seconds),
    "tree": (collectives.tree, tree_all_reduce_seconds),
    "halving_doubling": (collectives.halving_doubling, halving_doubling_all_reduce_seconds),
    "parameter_server": (collectives.parameter_server, parameter_server_seconds),
    "broadcast": (collectives.broadcast, broadcast_seconds),
    "reduce": (collectives.reduce, reduce_seconds),
    "scatter": (collectives.scatter, scatter_seconds),
    "gather": (collectives.gather, gather_seconds),
    "all_gather": (collectives.all_gather, all_gather_seconds),
    "reduce_scatter": (collectives.reduce_scatter, reduce_scatter_seconds),
    "all_to_all": (collectives.all_to_all, all_to_all_seconds),
}
# (bytes, bytes per second, latency): bound by bytes, bound by latency, and one between, where the order of arrivals
# can change; nothing to send, and no latency.
LINKS = ((3e7, 1.25e9, 5e-5), (1e3, 1e9, 1e-2), (1e6, 1e9, 3e-3), (0.0, 1e9, 1e-3), (1e8, 1e9, 0.0))
RANKS = range(1, 18)
SHARDED = (1, 2, 3, 4, 7, 8)  # workers; with every number of servers that makes sense
TWO_TIERS = ((1, 1), (4, 1), (4, 4), (8, 4), (8, 2), (12, 3), (15, 5), (24, 8))  # workers, per node


def claims() -> list[Claim]:
    """Each closed form over many sizes, links and numbers of ranks; the row shows the one that differs most."""
    rows = {name: costs(name) for name in COSTS}
    rows |= {"sharded servers": sharded(colocated=False), "sharded servers, colocated": sharded(colocated=True)}
    rows |= {"hierarchical, a NIC per worker": two_tiers("worker"), "hierarchical, a NIC per node": two_tiers("node")}
    return [_worst(case, pairs) for case, pairs in rows.items()]


def _worst(case: str, pairs: Iterator[Pair]) -> Claim:
    expressions, found = zip(*pairs, strict=True)
    return all_exactly(f"{case}: worst of {len(found)}", expressions, found)


def costs(name: str) -> Iterator[Pair]:
    """One collective on all `LINKS` and `RANKS`."""
    schedule_of, seconds = COSTS[name]
    for num_bytes, speed, latency in LINKS:
        for ranks in RANKS:
            vector = ranks * num_bytes if name == "all_to_all" else num_bytes
            simulated = simulated_seconds(schedule_of(ranks), vector, _cluster(ranks, speed, latency))
            yield seconds(num_bytes, ranks, speed, latency), simulated


def sharded(colocated: bool) -> Iterator[Pair]:
    """Parameters divided among several servers."""
    num_bytes, speed, latency = 3e7, 1.25e9, 5e-3
    for workers in SHARDED:
        for servers in range(1, workers + 1 if colocated else 2 * workers + 2):
            schedule = collectives.parameter_server(workers, servers, colocated=colocated)
            expression = parameter_server_seconds(num_bytes, workers, speed, latency, servers, colocated)
            yield expression, simulated_seconds(schedule, num_bytes, _cluster(workers, speed, latency))


def two_tiers(nic_per: Literal["worker", "node"]) -> Iterator[Pair]:
    """Rings inside nodes and between them."""
    for num_bytes, fast, latency in ((3e7, 3e10, 5e-5), (1e6, 2e9, 1e-3)):
        for workers, per_node in TWO_TIERS:
            nodes = {
                "per_node": per_node, "bandwidth": write(fast, "byte/second"), "latency": "2 us", "nic_per": nic_per,
            }  # fmt: skip
            simulated = simulated_seconds(
                collectives.hierarchical(workers, per_node), num_bytes, _cluster(workers, 1.25e9, latency, nodes=nodes)
            )
            expression = hierarchical_all_reduce_seconds(
                num_bytes, workers, 1.25e9, latency, per_node, fast, 2e-6, nic_per
            )
            yield expression, simulated


def simulated_seconds(schedule: Schedule, num_bytes: float, cluster: Cluster) -> float:
    """When the last rank has finished."""
    return max(collective.run(schedule, cluster, num_bytes).ends_seconds)


def _cluster(workers: int, speed: float, latency: float, **more: Any) -> Cluster:
    links = {"bandwidth": write(speed, "byte/second"), "latency": write(latency, "second")}
    return Cluster.model_validate({"workers": workers} | links | more)
