"""The table of collectives: one row for each kind. Every list of kinds is read from here.

A new kind needs a row here, its closed form in `theory.collectives.CLOSED_FORMS`, and for an all-reduce its name in
examples/KEYS.md. Which engine simulates it follows from its schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from distsim.collectives.all_gather import all_gather
from distsim.collectives.all_to_all import all_to_all
from distsim.collectives.broadcast import broadcast
from distsim.collectives.gather import gather
from distsim.collectives.halving_doubling import halving_doubling
from distsim.collectives.hierarchical import hierarchical
from distsim.collectives.parameter_server import parameter_server
from distsim.collectives.reduce import reduce
from distsim.collectives.reduce_scatter import reduce_scatter
from distsim.collectives.ring import ring
from distsim.collectives.scatter import scatter
from distsim.collectives.schedule import Schedule
from distsim.collectives.tree import tree
from distsim.groups import Groups


@dataclass(frozen=True)
class Topology:
    """The hosts among which a collective runs.

    per_node: workers of each node, for a kind that needs nodes. servers: how many parameter servers, for a kind that
    has servers; colocated: they live on the workers' hosts. groups: of workers that call it among themselves, for the
    ring, the all-gather and the reduce-scatter.
    """

    workers: int
    per_node: int = 1
    servers: int = 1
    colocated: bool = False
    groups: Groups | None = None

    @property
    def ring(self) -> int:
        """The members of a ring: of a group, or all workers."""
        return (self.groups or Groups(self.workers)).size


@dataclass(frozen=True)
class Collective:
    """A kind of collective.

    schedule: builds its schedule. transfers: counts the schedule's transfers without building it. all_reduce: a
    scenario can name it as communication.kind. needs_nodes: it uses the fast tier inside nodes. has_servers: it sums
    on parameter servers. backend: torch's back ends all-reduce by this algorithm. compact: its schedule takes little
    memory, however many transfers there are. separate: each worker brings data of its own, not a vector to be summed.

    >>> row = COLLECTIVES["ring"]
    >>> row.transfers(Topology(workers=4)), len(row.schedule(Topology(workers=4)).rounds)
    (24, 6)
    """

    kind: str
    schedule: Callable[[Topology], Schedule]
    transfers: Callable[[Topology], int]
    all_reduce: bool = True
    needs_nodes: bool = False
    has_servers: bool = False
    backend: bool = False
    compact: bool = False
    separate: bool = False

    def whole_bytes(self, num_bytes: float, workers: int) -> float:
        """The bytes that the schedule's chunks make up, where each worker has `num_bytes`."""
        return workers * num_bytes if self.separate else num_bytes


def _halving_doubling_transfers(topology: Topology) -> int:
    rounds = topology.workers.bit_length() - 1
    core = 1 << rounds
    return 2 * (rounds * core + topology.workers - core)


def _hierarchical_transfers(topology: Topology) -> int:
    nodes = topology.workers // topology.per_node
    return 2 * topology.workers * (topology.per_node - 1 + nodes - 1)


_ROWS = (
    Collective("ring", lambda at: ring(at.workers, at.groups), lambda at: 2 * (at.ring - 1) * at.workers,
               backend=True, compact=True),
    Collective("tree", lambda at: tree(at.workers), lambda at: 2 * (at.workers - 1)),
    Collective("halving_doubling", lambda at: halving_doubling(at.workers), _halving_doubling_transfers),
    Collective("parameter_server",
               lambda at: parameter_server(at.workers, at.servers, colocated=at.colocated),
               lambda at: 2 * (at.workers - at.colocated) * at.servers, has_servers=True),
    Collective("hierarchical", lambda at: hierarchical(at.workers, at.per_node), _hierarchical_transfers,
               needs_nodes=True, compact=True),
    Collective("broadcast", lambda at: broadcast(at.workers), lambda at: at.workers - 1, all_reduce=False),
    Collective("reduce", lambda at: reduce(at.workers), lambda at: at.workers - 1, all_reduce=False),
    Collective("scatter", lambda at: scatter(at.workers), lambda at: at.workers - 1, all_reduce=False),
    Collective("gather", lambda at: gather(at.workers), lambda at: at.workers - 1, all_reduce=False),
    Collective("all_gather", lambda at: all_gather(at.workers, at.groups), lambda at: (at.ring - 1) * at.workers,
               all_reduce=False, compact=True),
    Collective("reduce_scatter", lambda at: reduce_scatter(at.workers, at.groups),
               lambda at: (at.ring - 1) * at.workers, all_reduce=False, compact=True),
    Collective("all_to_all", lambda at: all_to_all(at.workers), lambda at: (at.workers - 1) * at.workers,
               all_reduce=False, separate=True),
)  # fmt: skip
COLLECTIVES: dict[str, Collective] = {row.kind: row for row in _ROWS}
ALL_REDUCES: dict[str, Collective] = {row.kind: row for row in _ROWS if row.all_reduce}
