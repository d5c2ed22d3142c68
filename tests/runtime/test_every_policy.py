"""Every policy runs for real, and applies what its simulation applies."""

from __future__ import annotations

from typing import Any

import pytest

from distsim.policies import POLICIES, WithServer, smallest_table
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

STEPS, WORKERS = 8, 3
# One launch for each: its scenarios have the same number of ranks.
COMMUNICATION: dict[str, dict[str, Any]] = {
    "parameter_server": {"kind": "parameter_server"},
    "two servers": {"kind": "parameter_server", "servers": 2},
    "ring": {"kind": "ring"},
}
LAUNCHES: dict[str, list[dict[str, Any]]] = {
    "parameter_server": [
        {"kind": "synchronous"},
        {"kind": "backup", "backups": 1},
        {"kind": "asynchronous"},
        {"kind": "stale_synchronous", "staleness": 1},
        {"kind": "flexrr"},
    ],
    "two servers": [
        {"kind": "backup", "backups": 1},
        {"kind": "asynchronous"},
        {"kind": "stale_synchronous", "staleness": 0},
        {"kind": "stale_synchronous", "staleness": 2, "stop": "per_worker"},
    ],
    "ring": [
        {"kind": "synchronous"},
        {"kind": "local_sgd", "period": 2},
        {"kind": "ddp", "bucket": "64 KiB", "first_bucket": "64 KiB"},
        {"kind": "sharded", "stage": 3},
        {"kind": "tensor"},
        {"kind": "pipeline", "micro_batches": 2},
        {"kind": "mesh", "data": 1, "tensor": 3, "stage": 1},
    ],
}
LISTED = {policy["kind"] for policies in LAUNCHES.values() for policy in policies}
LAUNCHES["parameter_server"] += [
    smallest_table(kind) for kind, policy in POLICIES.items() if kind not in LISTED and issubclass(policy, WithServer)
]
PAIRS = [(kind, number) for kind, policies in LAUNCHES.items() for number in range(len(policies))]


def scenario(kind: str, policy: dict[str, Any]) -> Scenario:
    shares = policy["kind"] in ("tensor", "mesh")  # every layer, by four exchanges in every step
    return Scenario.of(
        {
            "name": policy["kind"],
            "steps": STEPS,
            "seed": 3,
            "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
            "compute": {"distribution": "lognormal", "mean": "80 ms" if shares else "20 ms", "cv": 0.3},
            "workload": {"gradient": "256 KiB", "batch": 8, "layers": 4}
            | ({"activation": "64 KiB"} if policy["kind"] in ("tensor", "pipeline", "mesh") else {})
            | ({"layers": 2} if shares else {}),
            "policy": policy,
            "communication": COMMUNICATION[kind],
        }
    )


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Trace]]:
    """The real runs, by communication."""
    return {kind: measure_all([scenario(kind, policy) for policy in policies]) for kind, policies in LAUNCHES.items()}


def test_no_policy_is_left_out() -> None:
    assert {policy["kind"] for policies in LAUNCHES.values() for policy in policies} == set(POLICIES)


@pytest.mark.real
@pytest.mark.parametrize(("kind", "number"), PAIRS)
def test_the_real_run_makes_the_simulated_updates(measured: dict[str, list[Trace]], kind: str, number: int) -> None:
    ours = measured[kind][number]
    predicted = simulate(ours.scenario)
    assert ours.producer == "measured"
    assert sorted(ours.updates.version.tolist()) == sorted(predicted.updates.version.tolist())
    work = [int(run.contributions.items[run.contributions.applied].sum()) for run in (ours, predicted)]
    assert work[0] == work[1]
    # Nobody can be faster than the drawn compute times, and 2 cores are no reason to be several times slower.
    assert 0.8 < ours.updates.time_seconds[-1] / predicted.updates.time_seconds[-1] < 4.0
