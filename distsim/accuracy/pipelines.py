"""Pipelines: the idle share of a step, and the time of a step with messages that take time."""

from __future__ import annotations

from typing import Any, Literal

from distsim.accuracy.claim import Claim, exactly
from distsim.accuracy.free_communication import Table, free
from distsim.metrics import summary
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.pipeline import bubble_share, gpipe_step_seconds

STAGES = 4
MICRO_BATCHES = (4, 8, 16)


def claims() -> list[Claim]:
    """Bubbles (p - 1)/(m + p - 1) of both schedules; a step of GPipe with one slow stage and messages."""
    rows = []
    for schedule in ("gpipe", "1f1b"):
        for micro_batches in MICRO_BATCHES:
            trace = simulate(_pipeline(schedule, micro_batches, {"mean": "24 ms"}))
            idle = summary(trace).idle_share
            case = f"{schedule}, {micro_batches} micro-batches: idle share"
            rows.append(exactly(case, bubble_share(STAGES, micro_batches), float("nan") if idle is None else idle))
    both: tuple[Literal["rendezvous", "eager"], ...] = ("rendezvous", "eager")
    for sends in both:
        for activation in ("16 MiB", "1 MiB", "0 B"):
            scenario = _pipeline(
                "gpipe", 8, {"mean": "300 ms", "slow": {"2": 1.5}},
                cluster={"workers": STAGES, "bandwidth": "1 Gbit/s", "latency": "100 us"},
                workload={"activation": activation, "backward_share": 0.6},
                communication={"kind": "ring", "sends": sends},
            )  # fmt: skip
            step = _with_messages(scenario, sends)
            found = simulate(scenario).total_seconds
            rows.append(exactly(f"gpipe, slow stage, {activation} {sends}: seconds", step, found))
    return rows


def _with_messages(scenario: Scenario, sends: Literal["rendezvous", "eager"]) -> float:
    """The step of the scenario above by its formula: forward and backward of a micro-batch by stage, one message."""
    stages = [0.3 / 8 * slowness for slowness in (1.0, 1.0, 1.5, 1.0)]
    transfer = 1e-4 + (scenario.workload.handed_on_bytes or 0.0) / 8 / 1.25e8
    return gpipe_step_seconds([0.4 * x for x in stages], [0.6 * x for x in stages], 8, transfer, sends)


def _pipeline(schedule: str, micro_batches: int, compute: Table, **tables: Any) -> Scenario:
    policy = {"kind": "pipeline", "micro_batches": micro_batches, "schedule": schedule}
    nothing_to_send = {"workload": {"activation": "0 B"}, "communication": {"kind": "ring"}}
    return free(policy, compute, STAGES, steps=1, **(nothing_to_send | tables))
