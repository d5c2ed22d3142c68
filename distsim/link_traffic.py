"""The links that a run's transfers crossed, and the bytes that each link carried, for the metrics and the figures.

A link is one direction of a NIC, or of a worker's place in the fast tier of its node. `Cluster.route` gives the links
between two hosts. Bytes between two ranks of one host cross no link. In a trace without a scenario each rank counts as
a host.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Floats, Indices
from distsim.cluster import LinkName
from distsim.trace import Trace, Transfers
from distsim.trace.derived import CollectiveTransfers

SAME_TIME = 1.0 + 1e-12
MOST_PAIRS = 10**7  # that are counted in an array


def ended(trace: Trace) -> Transfers:
    """The transfers that had ended by the last update."""
    _, end = trace.part_seconds or (0.0, trace.total_seconds)
    in_time = trace.transfers.end_seconds <= end * SAME_TIME
    return trace.transfers if in_time.all() else trace.transfers.where(in_time)


def ended_count(trace: Trace) -> int:
    """The number of transfers that had ended by the last update."""
    derived = isinstance(trace.transfers.derivation, CollectiveTransfers)  # an update is the end of its all-reduces
    return len(trace.transfers if derived else ended(trace))


def why_none(trace: Trace) -> str:
    """The reason why no transfer has ended in this trace.

    >>> import distsim
    >>> alone = distsim.example("synchronous_ring").replacing({"cluster.workers": 1})
    >>> why_none(distsim.simulate(alone))
    'one worker alone sends nothing'
    """
    if len(trace.transfers):
        return "no transfer had ended by the last update"
    if not len(trace.spans):
        return "nothing was recorded"
    if trace.workers == 1 and not trace.servers:
        return "one worker alone sends nothing"
    through = trace.scenario.communication.implementation if "scenario" in trace.metadata else None
    if trace.producer == "measured" and through == "backend":
        return "the backend's own all-reduce does not show its transfers"
    return "the trace holds no transfers"


def hosts(trace: Trace) -> int:
    """The number of hosts of the run's ranks."""
    return trace.scenario.hosts if "scenario" in trace.metadata else trace.workers + trace.servers


def links(trace: Trace) -> list[LinkName]:
    """All links between the run's hosts, also links that carried nothing.

    >>> import distsim
    >>> links(distsim.simulate(distsim.example("synchronous_ring").replacing({"cluster.workers": 2})))
    [('up', 0), ('up', 1), ('down', 0), ('down', 1)]
    """
    if "scenario" in trace.metadata:
        return list(trace.scenario.cluster.capacities(trace.scenario.hosts))
    return [(way, host) for way in ("up", "down") for host in range(hosts(trace))]


def route(trace: Trace, source: int, target: int) -> tuple[LinkName, ...]:
    """The links that a transfer from one rank to another crosses."""
    if "scenario" not in trace.metadata:
        return (("up", source), ("down", target))
    scenario = trace.scenario
    ends = scenario.host(source), scenario.host(target)
    return () if ends[0] == ends[1] else scenario.cluster.route(*ends)[0]


def pairs(transfers: Transfers) -> tuple[list[tuple[int, int]], NDArray[np.intp]]:
    """The (source, target) pairs with transfers, and for each transfer the place of its pair among the pairs."""
    most = int(transfers.target.max(initial=0)) + 1
    pair = transfers.source.astype(np.int64) * most + transfers.target
    if most**2 > MOST_PAIRS:
        numbers, place_of = np.unique(pair, return_inverse=True)
        return [divmod(number, most) for number in numbers.tolist()], place_of
    found = np.flatnonzero(np.bincount(pair))  # ranks are few and transfers many, so do not sort transfers
    place = np.zeros(int(found.max(initial=0)) + 1, dtype=np.intp)
    place[found] = np.arange(len(found))
    return [divmod(number, most) for number in found.tolist()], place[pair]


def bytes_by_pair(trace: Trace) -> tuple[Indices, Indices, Floats]:
    """Source rank, target rank and the bytes from one to the other by the last update; a pair may come several times.

    Where the transfers follow from a few numbers, so do their bytes, and no transfer is computed.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 1}))
    >>> [column.tolist() for column in bytes_by_pair(trace)]
    [[0, 1], [1, 0], [4194304.0, 4194304.0]]
    """
    derivation = trace.transfers.derivation
    if isinstance(derivation, CollectiveTransfers):
        return derivation.carried()  # an update is the end of its all-reduces
    in_time = ended(trace)
    found, pair_of = pairs(in_time)
    source, target = np.array(found, dtype=np.int32).reshape(-1, 2).T
    return source, target, np.bincount(pair_of, in_time.bytes, len(found)).astype(np.float64)


def carried_by_link(trace: Trace) -> dict[LinkName, float]:
    """The bytes that each link carried by the last update; links that carried nothing are left out.

    Where the transfers follow from a few numbers, so do their bytes, and no transfer is computed.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 1}))
    >>> carried_by_link(trace)
    {('up', 0): 4194304.0, ('up', 1): 4194304.0, ('down', 0): 4194304.0, ('down', 1): 4194304.0}
    """
    derivation = trace.transfers.derivation
    if not isinstance(derivation, CollectiveTransfers):
        return bytes_by_link(trace, ended(trace))
    return derivation.by_link()  # an update is the end of its all-reduces


def bytes_by_link(trace: Trace, transfers: Transfers) -> dict[LinkName, float]:
    """The bytes that each link carried in these transfers; links that carried nothing are left out.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 1}))
    >>> bytes_by_link(trace, trace.transfers)
    {('up', 0): 4194304.0, ('down', 1): 4194304.0, ('up', 1): 4194304.0, ('down', 0): 4194304.0}
    """
    found, pair_of = pairs(transfers)
    carried: dict[LinkName, float] = {}
    for pair, num_bytes in zip(found, np.bincount(pair_of, transfers.bytes, len(found)).tolist(), strict=True):
        for link in route(trace, *pair):
            carried[link] = carried.get(link, 0.0) + num_bytes
    return carried
