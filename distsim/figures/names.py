"""What runs that stand beside each other in one figure are called, and what links are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from distsim.cluster import Link
from distsim.errors import InputError
from distsim.trace import Trace


def run_names(figure: str, found: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """The given names, or else what was found of each run, numbered where that is not enough to tell them apart.

    figure: whose argument `names` is. Raises InputError where there are more or fewer names than runs.

    >>> run_names("timeline", ["simulated", "simulated"], None)
    ['simulated 1', 'simulated 2']
    """
    if names is not None:
        if len(names) != len(found):
            rule = f"must name each of the {len(found)} traces"
            raise InputError.of(f"{figure}(names)", names, rule, "give one per trace")
        return list(names)
    if len(set(found)) == len(found):
        return list(found)
    seen: Counter[str] = Counter()
    numbered = []
    for name in found:
        seen[name] += 1
        numbered.append(f"{name} {seen[name]}" if found.count(name) > 1 else name)
    return numbered


def nic_name(trace: Trace, host: int) -> str:
    """Whose NIC it is that `host` uses: a worker's, a server's, or that of a node whose workers share one."""
    cluster = trace.scenario.cluster if "scenario" in trace.metadata else None
    if cluster and cluster.nodes and cluster.nodes.nic_per == "node" and host < trace.workers:
        return f"node {cluster.node_of(host)}"
    return trace.lane(host)


def link_name(trace: Trace, link: Link) -> str:
    """What a link is called: its way, and whose it is.

    >>> import distsim
    >>> link_name(distsim.simulate(distsim.example("synchronous_ring")), ("up", 2))
    'up-link of worker 2'
    """
    way, host = link
    return f"{way}-link of {trace.lane(host) if way.startswith('fast') else nic_name(trace, host)}"
