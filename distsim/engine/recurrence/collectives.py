"""Which collectives have a recurrence, and each of them as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from distsim.engine.recurrence.all_reduce import AllReduce
from distsim.engine.recurrence.ring import Ring
from distsim.engine.recurrence.rounds import Layout, Rounds, Ways, may_share
from distsim.engine.recurrence.tree import Tree
from distsim.scenario import Scenario


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario`, whose workers all take part in each all-reduce, has no recurrence; None where there is one."""
    communication, nodes = scenario.communication, scenario.cluster.nodes
    match communication.kind:
        case "ring":
            return None  # only neighbours use a link, also that of a node
        case "tree":
            return None if nodes is None else "communication.kind = 'tree' with cluster.nodes"
        case "parameter_server" if communication.colocated:
            return "communication.colocated = true"
        case "parameter_server":
            return None if nodes is None else "communication.kind = 'parameter_server' with cluster.nodes"
    if nodes is None and communication.sends == "rendezvous":
        return None  # a link belongs to one worker, which does one thing after the other
    link = may_share(scenario.schedule(), scenario.cluster, eager=communication.sends == "eager")
    if link is None:
        return None
    return (
        f"communication.kind = {communication.kind!r} with sends = {communication.sends!r}, "
        f"where transfers may share the {link[0]}-link of host {link[1]}"
    )


def all_reduces(scenario: Scenario, sizes: Sequence[float], updates: int) -> list[AllReduce]:
    """The scenario's collective for each of these numbers of bytes, which each of so many updates needs once."""
    make = _maker(scenario)
    of_size = {size: make(size, updates * sizes.count(size)) for size in dict.fromkeys(sizes)}
    return [of_size[size] for size in sizes]


def _maker(scenario: Scenario) -> Callable[[float, int], AllReduce]:
    """What makes the all-reduce of a size, given how many calls there will be."""
    cluster, eager = scenario.cluster, scenario.communication.sends == "eager"
    if scenario.communication.kind == "tree":
        return lambda num_bytes, _: Tree(cluster, num_bytes, eager=eager)
    if scenario.communication.kind == "ring":
        ranks = np.arange(cluster.workers, dtype=np.int32)
        ways = Ways.of(cluster, ranks, (ranks + 1) % cluster.workers)
        return lambda num_bytes, calls: Ring(ways, num_bytes, eager=eager, calls=calls)
    layout = Layout.of(scenario.schedule(), cluster)
    return lambda num_bytes, _: Rounds(layout, num_bytes, eager=eager)
