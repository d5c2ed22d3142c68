"""How long a collective of the back end takes on the testbed: the closed form of `theory`, on its slowest link.

The algorithms are those that back ends use for large messages: a ring for all_reduce, all_gather and reduce_scatter, a
binomial tree for broadcast and reduce, and pairs for all_to_all.
"""

from __future__ import annotations

from collections.abc import Sequence

from distsim.cluster import Cluster
from distsim.collectives import COLLECTIVES
from distsim.theory.collectives import CLOSED_FORMS

# By operation of the back end.
SECONDS = {kind: CLOSED_FORMS[kind] for kind, row in COLLECTIVES.items() if not row.all_reduce}
SECONDS |= {"all_reduce": CLOSED_FORMS["ring"], "barrier": CLOSED_FORMS["tree"]}


def collective_seconds(operation: str, num_bytes: int, ranks: Sequence[int], cluster: Cluster) -> float:
    """Seconds from the last member's call to the end. num_bytes: of the whole vector, as `theory.collectives` has it.

    >>> cluster = Cluster(workers=4, bandwidth="1 GB/s", latency="0 s")
    >>> collective_seconds("all_reduce", 10**9, range(4), cluster)
    1.5
    """
    slowest = min(min(cluster.up(rank), cluster.down(rank)) for rank in ranks)
    return SECONDS[operation](num_bytes, len(ranks), slowest, cluster.latency_seconds)
