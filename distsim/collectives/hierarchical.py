"""Hierarchical all-reduce: a ring inside each node over the fast tier, rings between nodes for what they summed.

Reduce-scatter inside the node leaves each worker one share of the node's sum; workers of equal place in their nodes
all-reduce that share around a ring; all-gather inside the node spreads the result. With g workers per node and m
nodes each worker sends 2 (g - 1)/g S inside and 2 (m - 1)/(g m) S between nodes.
"""

from __future__ import annotations

from functools import partial

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import RingRound
from distsim.errors import InputError


def hierarchical(workers: int, per_node: int) -> Schedule:
    """Nodes of `per_node` consecutive ranks; `per_node` must divide `workers`.

    >>> hierarchical(8, per_node=4).check()
    >>> len(hierarchical(8, per_node=4).rounds)
    8
    """
    if workers % per_node:
        raise InputError.of(
            "nodes.per_node", per_node, f"must divide the {workers} workers", "fill every node with workers"
        )
    nodes = workers // per_node
    # Inside a node a piece is one share, cut into one chunk per node. Between nodes workers of equal place form a ring:
    # place p of a node holds share p + 1, and its ring works on the chunks of that share.
    inside = partial(RingRound, workers, size=per_node, share=nodes)
    between = partial(RingRound, workers, size=nodes, stride=per_node, apart=True)
    rounds = [
        *(inside(-number, reduce=True) for number in range(per_node - 1)),
        *(between(-number, reduce=True) for number in range(nodes - 1)),
        *(between(1 - number, reduce=False) for number in range(nodes - 1)),
        *(inside(1 - number, reduce=False) for number in range(per_node - 1)),
    ]
    return Schedule("hierarchical", workers, workers, tuple(rounds), gate="process")
