"""The role of each process of a real run."""

from __future__ import annotations

from distsim.scenario import Scenario


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
    elif not scenario.server_decides:
        ranks = scenario.schedule().ranks
    return [f"{'worker' if rank < workers else 'server'} {rank}" for rank in range(ranks)]
