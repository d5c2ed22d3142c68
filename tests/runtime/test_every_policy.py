"""Every policy runs for real, and applies what its simulation applies."""

from __future__ import annotations

from typing import Any

import pytest

from distsim.runtime.measure import measure
from distsim.scenario import Scenario
from distsim.simulation import simulate

STEPS, WORKERS = 8, 3
WITH_SERVER: list[dict[str, Any]] = [
    {"kind": "synchronous"},
    {"kind": "asynchronous"},
    {"kind": "stale_synchronous", "staleness": 1},
    {"kind": "flexrr"},
]
AMONG_PEERS: list[dict[str, Any]] = [
    {"kind": "local_sgd", "period": 2},
    {"kind": "ddp", "bucket": "64 KiB", "first_bucket": "64 KiB"},
]
STANDING_FOR_ALL = ("asynchronous", "ddp", "flexrr")
PAIRS = [("parameter_server", policy) for policy in WITH_SERVER] + [("ring", policy) for policy in AMONG_PEERS]


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        pytest.param(
            *pair, marks=() if pair[1]["kind"] in STANDING_FOR_ALL else pytest.mark.thorough, id=pair[1]["kind"]
        )
        for pair in PAIRS
    ],
)
def test_the_real_run_makes_the_simulated_updates(kind: str, policy: dict[str, Any]) -> None:
    scenario = Scenario.of(
        {
            "name": "every-policy",
            "steps": STEPS,
            "seed": 3,
            "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
            "compute": {"distribution": "lognormal", "mean": "20 ms", "cv": 0.3},
            "workload": {"gradient": "256 KiB", "batch": 8, "layers": 4},
            "policy": policy,
            "communication": {"kind": kind},
        }
    )
    predicted, measured = simulate(scenario), measure(scenario)
    assert measured.producer == "measured"
    assert measured.updates.version.tolist() == predicted.updates.version.tolist()
    work = [int(run.contributions.items[run.contributions.applied].sum()) for run in (measured, predicted)]
    assert work[0] == work[1]
    # Nobody can be faster than the drawn compute times, and 2 cores are no reason to be several times slower.
    assert 0.8 < measured.updates.time_seconds[-1] / predicted.updates.time_seconds[-1] < 4.0
