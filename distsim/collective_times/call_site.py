"""Where a collective is called: its schedule on the links of a cluster, and the recurrence that is exact for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from distsim.cluster import Cluster, LinkName
from distsim.collective_times.all_reduce import AllReduce
from distsim.collective_times.max_plus_rounds import Rounds, RoutedSchedule, may_share
from distsim.collective_times.rings import Rings
from distsim.collective_times.tree import Tree
from distsim.collectives import Collective, RingRound, Topology, parameter_server, tree
from distsim.communication import Communication, Sends
from distsim.groups import ALL_REDUCE, GroupExchange

Form = Literal["rings", "tree", "one server", "sequential", "other"]


@dataclass(frozen=True)
class CallSite:
    """The collective that all workers of a cluster call, and how they send. topology: of the cluster."""

    collective: Collective
    topology: Topology
    cluster: Cluster
    sends: Sends

    @classmethod
    def of(cls, cluster: Cluster, communication: Communication, exchange: GroupExchange = ALL_REDUCE) -> CallSite:
        """The collective of these tables of a scenario; for another `exchange` than an all-reduce, that one."""
        per_node = cluster.nodes.per_node if cluster.nodes else 1
        topology = Topology(cluster.workers, per_node, communication.servers, communication.colocated, exchange.groups)
        return cls(communication.collective(exchange.kind), topology, cluster, communication.sends)

    @property
    def form(self) -> Form:
        """What the schedule's own transfers say of the recurrence that is exact for it."""
        return _form(self.collective, self.topology)

    @property
    def eager(self) -> bool:
        """Whether a transfer starts without its target."""
        return self.sends == "eager"

    def shared_link(self) -> LinkName | None:
        """A link that two transfers of one call may use at once, where ranks are `sequential` or in `rings`."""
        schedule = self.collective.schedule(self.topology)
        around = (schedule.workers, 1)
        one_ring = all(isinstance(found, RingRound) and found.rings == around for found in schedule.rounds)
        # In one ring only neighbours use a link, also where a node shares a NIC.
        if one_ring or (self.cluster.nodes is None and not self.eager):
            return None  # a link carries the transfers of one rank, which follow each other
        return may_share(schedule, self.cluster, eager=self.eager)

    def all_reduces(self, sizes: Sequence[float], updates: int) -> list[AllReduce]:
        """The collective for each of these sizes in bytes; each update calls each of them once."""
        make = self._maker()
        of_size = {size: make(size, updates * sizes.count(size)) for size in dict.fromkeys(sizes)}
        return [of_size[size] for size in sizes]

    def _maker(self) -> Callable[[float, int], AllReduce]:
        """A function that makes the all-reduce for a size in bytes and a number of calls."""
        cluster, eager = self.cluster, self.eager
        if self.form == "tree":
            return lambda num_bytes, _: Tree(cluster, num_bytes, eager=eager)
        schedule = self.collective.schedule(self.topology)
        if self.form == "rings":
            return lambda num_bytes, calls: Rings(schedule, cluster, num_bytes, eager=eager, calls=calls)
        routed = RoutedSchedule.of(schedule, cluster)
        return lambda num_bytes, calls: Rounds(routed, num_bytes, eager=eager, calls=calls)


def calls_of(
    cluster: Cluster, communication: Communication, exchanges: Sequence[GroupExchange], sizes: Sequence[float],
    updates: int,
) -> list[AllReduce]:  # fmt: skip
    """The collectives of one update, of these exchanges and sizes in bytes, in order; each of `updates` calls them."""
    found: dict[GroupExchange, Iterator[AllReduce]] = {}
    for exchange in dict.fromkeys(exchanges):
        own = [size for size, other in zip(sizes, exchanges, strict=True) if other == exchange]
        found[exchange] = iter(CallSite.of(cluster, communication, exchange).all_reduces(own, updates))
    return [next(found[exchange]) for exchange in exchanges]


@lru_cache(maxsize=32)
def _form(collective: Collective, topology: Topology) -> Form:
    """Kept, since it takes a while."""
    schedule = collective.schedule(topology)
    if schedule.in_rings:
        return "rings"
    if schedule.moves_like(tree(schedule.workers)):
        return "tree"
    if schedule.moves_like(parameter_server(schedule.workers)):
        return "one server"
    return "sequential" if schedule.is_sequential and not schedule.servers else "other"
