"""Hierarchical all-reduce: a ring inside each node over the fast tier, rings between nodes for what they summed.

Reduce-scatter inside the node leaves each worker one share of the node's sum; workers of equal place in their nodes
all-reduce that share around a ring; all-gather inside the node spreads the result. With g workers per node and m
nodes each worker sends 2 (g - 1)/g S inside and 2 (m - 1)/(g m) S between nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer
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
    inside = [[node * per_node + place for place in range(per_node)] for node in range(nodes)]
    between = [[node * per_node + place for node in range(nodes)] for place in range(per_node)]
    rounds = [
        *_ring_rounds(inside, per_node - 1, share=nodes, ahead=0, reduce=True),
        # Place p of a node now holds share p + 1, cut into one piece per node.
        *_ring_rounds(between, nodes - 1, share=1, ahead=0, reduce=True, base=nodes),
        *_ring_rounds(between, nodes - 1, share=1, ahead=1, reduce=False, base=nodes),
        *_ring_rounds(inside, per_node - 1, share=nodes, ahead=1, reduce=False),
    ]
    return Schedule("hierarchical", workers, workers, tuple(rounds), gate="process")


def _ring_rounds(
    rings: list[list[int]], rounds: int, share: int, ahead: int, reduce: bool, base: int = 0
) -> Iterator[tuple[Transfer, ...]]:
    """Rounds of several rings at once: member i sends piece i + ahead - round, of `share` chunks, to the next member.

    base: chunks per ring, where each ring works on a part of the data of its own: ring p on share p + 1.
    """
    for number in range(rounds):
        yield tuple(
            Transfer(
                rank,
                ring[(i + 1) % len(ring)],
                (place + 1) % len(rings) * base + (i + ahead - number) % len(ring) * share,
                reduce,
                chunks=share,
            )
            for place, ring in enumerate(rings)
            for i, rank in enumerate(ring)
        )
