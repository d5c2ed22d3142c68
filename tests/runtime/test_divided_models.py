"""Divided models on real processes: with pieces of 20 ms and more, a prediction is within 10 % of the run.

With shorter pieces, what a message costs beside its bytes is a large part of a piece (`course/ACCURACY.md`).
"""

from __future__ import annotations

from typing import Any

import pytest

from distsim import Scenario, example, simulate
from distsim.runtime.measure import measure_all

FAR_PCT = 10.0
TRIES = 2  # another program may be at work during the first

pytestmark = [pytest.mark.real, pytest.mark.more, pytest.mark.alone, pytest.mark.thorough]


def divided(workers: int, policy: dict[str, Any], workload: dict[str, Any], mean: str, steps: int) -> Scenario:
    changes = {"cluster.workers": workers, "workload": workload, "policy": policy, "compute": {"mean": mean}}
    return example("synchronous_ring").replacing({**changes, "steps": steps})


def divided_models(workers: int) -> dict[str, Scenario]:
    """A pipeline's shortest piece is a forward of 20 ms, and so is what tensor parallel training does between sums."""
    one_each = {"batch": 32, "activation": "256 KiB"}
    pipelines = {
        schedule: divided(
            workers, {"kind": "pipeline", "micro_batches": 4, "schedule": schedule}, one_each, "240 ms", steps=5
        )
        for schedule in ("gpipe", "1f1b")
    }
    gradients = {"gradient": "1 MiB", "batch": 8, "layers": 4}
    sharded = {
        f"stage {stage}": divided(workers, {"kind": "sharded", "stage": stage}, gradients, "480 ms", steps=3)
        for stage in (1, 3)
    }
    activations = {"activation": "48 KiB", "batch": 8, "layers": 4}
    return pipelines | sharded | {"tensor": divided(workers, {"kind": "tensor"}, activations, "480 ms", steps=3)}


def errors_pct(scenarios: dict[str, Scenario]) -> dict[str, float]:
    runs = measure_all(list(scenarios.values()))
    return {
        name: 100.0 * (simulate(scenario).total_seconds / run.total_seconds - 1.0)
        for (name, scenario), run in zip(scenarios.items(), runs, strict=True)
    }


@pytest.mark.parametrize("workers", [2, 3])
def test_a_prediction_is_near(workers: int) -> None:
    found: list[dict[str, float]] = []
    for _ in range(TRIES):
        found.append(errors_pct(divided_models(workers)))
        if all(abs(error) < FAR_PCT for error in found[-1].values()):
            return
    assert not found
