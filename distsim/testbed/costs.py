"""How long a collective of the back end takes on the testbed: the closed forms of `theory`, at its slowest link.

Those of the algorithms that back ends use for large messages: a ring for all_reduce, all_gather and reduce_scatter, a
binomial tree for broadcast and reduce, pairs for all_to_all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from distsim.cluster import Cluster
from distsim.theory import collectives

SECONDS: dict[str, Callable[[float, int, float, float], float]] = {
    "all_reduce": collectives.ring_all_reduce_seconds,
    "all_gather": collectives.all_gather_seconds,
    "reduce_scatter": collectives.reduce_scatter_seconds,
    "broadcast": collectives.broadcast_seconds,
    "reduce": collectives.reduce_seconds,
    "scatter": collectives.scatter_seconds,
    "gather": collectives.gather_seconds,
    "all_to_all": collectives.all_to_all_seconds,
    "barrier": collectives.tree_all_reduce_seconds,
}


def collective_seconds(kind: str, num_bytes: int, ranks: Sequence[int], cluster: Cluster) -> float:
    """Seconds from the last member's call to the end. num_bytes: of the whole vector, as `theory.collectives` has it.

    >>> cluster = Cluster(workers=4, bandwidth="1 GB/s", latency="0 s")
    >>> collective_seconds("all_reduce", 10**9, range(4), cluster)
    1.5
    """
    slowest = min(min(cluster.up(rank), cluster.down(rank)) for rank in ranks)
    return SECONDS[kind](num_bytes, len(ranks), slowest, cluster.latency_seconds)
