"""Which collectives have a recurrence, and each of them as one."""

from __future__ import annotations

from distsim.engine.recurrence.all_reduce import AllReduce
from distsim.engine.recurrence.one_server import OneServer
from distsim.engine.recurrence.ring import Ring
from distsim.engine.recurrence.rounds import Rounds, may_share
from distsim.engine.recurrence.tree import Tree
from distsim.scenario import Scenario


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario`, whose workers all take part in each all-reduce, has no recurrence; None where there is one."""
    communication, cluster = scenario.communication, scenario.cluster
    if communication.kind == "ring":
        return None  # only neighbours use a link, also that of a node
    if communication.kind in ("tree", "parameter_server") and cluster.nodes is not None:
        return "cluster.nodes"
    if communication.kind == "parameter_server":
        return "communication.colocated = true" if communication.colocated else None
    if communication.kind == "tree":
        return None
    link = may_share(scenario.schedule(), cluster, eager=communication.sends == "eager")
    if link is None:
        return None
    return (
        f"communication.kind = {communication.kind!r} with sends = {communication.sends!r}, "
        f"where transfers may share the {link[0]}-link of host {link[1]}"
    )


def all_reduce(scenario: Scenario, num_bytes: float, calls: int, apply_seconds: float = 0.0) -> AllReduce:
    """The scenario's collective for `num_bytes`. calls: how many. apply_seconds: a server's own work for each."""
    communication, cluster = scenario.communication, scenario.cluster
    eager = communication.sends == "eager"
    match communication.kind:
        case "ring":
            return Ring(cluster, num_bytes, eager=eager, calls=calls)
        case "tree":
            return Tree(cluster, num_bytes, eager=eager)
        case "parameter_server":
            fifo = scenario.receive == "fifo"
            return OneServer(cluster, num_bytes, eager=eager, fifo=fifo, apply_seconds=apply_seconds)
        case _:
            return Rounds(scenario.schedule(), cluster, num_bytes, eager=eager)
