"""What can be simulated but not really run is refused, with the key, the value and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from distsim import Scenario
from distsim.errors import InputError
from distsim.policies import POLICIES, smallest_table
from distsim.runtime.limits import check_available

SERVER = {"kind": "parameter_server"}
PIPELINE: dict[str, Any] = {"kind": "pipeline", "micro_batches": 8}


def scenario(policy: dict[str, Any], communication: dict[str, Any], **tables: Any) -> Scenario:
    workload = {"activation": "1 MiB"} if policy["kind"] in ("tensor", "pipeline") else {"gradient": "1 MiB"}
    if policy["kind"] == "mesh":
        workload["activation"] = "1 MiB"
    given = {
        "steps": 4,
        "cluster": {"workers": 4, "bandwidth": "1 Gbit/s", "latency": "0 s"},
        "compute": {"mean": "1 ms"},
        "workload": workload,
        "policy": policy,
        "communication": communication,
    }
    return Scenario.of(given | tables)


@pytest.mark.parametrize(
    ("policy", "communication", "tables", "words"),
    [
        ({"kind": "flexrr"}, SERVER, {"workload": {"model": "mlp"}}, "workload.model = 'mlp': .* 'flexrr' yet"),
        (PIPELINE, {"kind": "ring"}, {"workload": {"model": "mlp", "activation": "1 MiB"}}, "workload.model = 'mlp'"),
        (PIPELINE, {"kind": "ring", "sends": "eager"}, {}, "communication.sends = 'eager': .*write rendezvous"),
        (PIPELINE | {"micro_batches": 3, "schedule": "1f1b"}, {"kind": "ring"}, {}, "micro_batches = 3: .* 4 stages"),
        ({"kind": "ddp", "compression": 0.3}, {"kind": "ring"}, {}, "policy.compression = 0.3: .*write 1.0"),
        ({"kind": "synchronous"}, {"kind": "tree"}, {}, "communication.implementation = 'backend': .*\"schedule\""),
        ({"kind": "local_sgd", "period": 2}, SERVER | {"receive": "fifo"}, {}, "communication.receive = 'fifo'"),
        ({"kind": "backup", "backups": 1}, SERVER | {"implementation": "schedule"}, {}, "implementation = 'schedule'"),
        (
            {"kind": "mesh", "data": 4, "tensor": 1}, {"kind": "ring"}, {"workload": {"model": "transformer"}},
            "policy.tensor = 1: shares no block, .* Cure: write kind = \"ddp\", or simulate it",
        ),
        (
            {"kind": "synchronous"}, {"kind": "ring"}, {"workload": {"model": "mlp", "batch": 400}},
            "workload.batch = 400: .*write 359 or less",
        ),
    ],
)  # fmt: skip
def test_a_scenario_that_only_a_simulation_can_run_is_refused(
    policy: dict[str, Any], communication: dict[str, Any], tables: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        check_available(scenario(policy, communication, **tables))


@pytest.mark.parametrize("kind", POLICIES)
def test_every_policy_can_be_really_run(kind: str) -> None:
    policy = smallest_table(kind)
    communication = SERVER if POLICIES[kind].server != "none" else {"kind": "ring"}
    check_available(scenario(policy, communication))
