"""How long a real run should take: below its deadline, on the links that it uses, with the ranks that start here."""

from __future__ import annotations

from typing import Any

import pytest

from distsim import example
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.expected_time import expected_seconds
from distsim.runtime.measure import estimated_seconds

SLOW = {"cluster.bandwidth": "10 Mbit/s", "workload.gradient": "25 MB"}
SLOW_NIC = {"cluster.nic": {"1": {"up": "1 Mbit/s"}}, "workload.gradient": "25 MB"}
NODES = {"per_node": 2, "bandwidth": "10 Mbit/s", "latency": "1 s"}
SLOW_NODES = {"cluster.nodes": NODES, "cluster.latency": "1 s", "workload.gradient": "25 MB"}


@pytest.mark.parametrize("changes", [SLOW, SLOW_NIC, SLOW_NODES])
def test_the_machines_own_links_are_not_the_scenarios(changes: dict[str, Any]) -> None:
    slow = example("synchronous_ring").replacing(changes)
    assert expected_seconds([slow]) <= estimated_seconds([slow])
    assert expected_seconds([slow], emulate=True) > 2 * expected_seconds([slow])


def test_imposed_links_are_the_scenarios() -> None:
    slow = example("synchronous_ring").replacing(SLOW)
    carried = slow.steps * 2 * 3 / 4 * 25e6 / 1.25e6  # a ring of 4
    assert carried <= expected_seconds([slow], emulate=True) <= estimated_seconds([slow], NetworkPlan.of(slow))


def test_only_the_ranks_that_start_here_share_the_cores() -> None:
    busy = example("synchronous_ring").replacing({"cluster.workers": 64})
    assert expected_seconds([busy], processes=1) < expected_seconds([busy], processes=64) == expected_seconds([busy])
