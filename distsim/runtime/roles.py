"""The role of each process of a real run."""

from __future__ import annotations

from distsim.policies import WithServer
from distsim.scenario import Scenario


def among_peers(scenario: Scenario) -> bool:
    """Whether no server decides: workers follow a plan, and servers at most follow a schedule."""
    return not (scenario.servers and isinstance(scenario.policy, WithServer))


def roles(scenario: Scenario) -> list[str]:
    """The role of each rank. A colocated server that only follows a schedule has no rank: its worker's process is both.

    >>> from distsim.examples import example
    >>> roles(example("backup_server"))[4:]
    ['worker 4', 'server 5']
    """
    workers = scenario.cluster.workers
    ranks = scenario.ranks
    if not scenario.policy.all_reduces:
        ranks = workers
    elif among_peers(scenario):
        ranks = scenario.schedule().ranks
    return [f"{'worker' if rank < workers else 'server'} {rank}" for rank in range(ranks)]
