"""Adds to a profile the pace of busy cores: how a model computes while other ranks compute it on the other cores.

Two short runs tell it, one of a single worker and one of a worker for each core. They exchange nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from distsim.calibration.exchange import WARM_UP_STEPS
from distsim.calibration.plan import NOMINAL_LINKS, model_seconds
from distsim.profile import BusyCores, Profile
from distsim.progress import Report
from distsim.runtime.machine import usable_cores
from distsim.runtime.measure import estimated_seconds, measure
from distsim.scenario import Scenario

MOST_WORKERS = 4  # each holds the model, its gradients and a batch
STEPS = 20
PATIENCE_SECONDS = 300.0  # beyond the deadline of such a run: a busy machine spoils the pace, but not the profile


def with_busy_cores(
    found: Profile, spec: str, *, workers: int | None = None, steps: int = STEPS, report: Report | None = None
) -> Profile:
    """The profile `found` of the model "my_model.py:build" with the pace of `workers` that compute at once.

    workers: by default as many as this machine has cores, at most 4; with one there is nothing to measure. steps: of
    each run that count, after a warm-up. report: called with each `Phase`. Raises InputError and RunError as `measure`
    does.
    """
    workers = min(usable_cores(), MOST_WORKERS) if workers is None else workers
    if workers < 2 or found.device != "cpu":
        return found
    alone, together = (_seconds(found, spec, number, steps, report) for number in (1, workers))
    return replace(found, busy=BusyCores(workers, alone / together))


def _seconds(found: Profile, spec: str, workers: int, steps: int, report: Report | None) -> float:
    """The median over the steps of forward and backward of the slowest of the workers."""
    whole = WARM_UP_STEPS + steps + 1
    scenario = Scenario.of(
        {
            "name": f"{workers} at once",
            "steps": whole,
            "cluster": {"workers": workers, **NOMINAL_LINKS},
            "workload": {"model": spec, "profile": found.as_dict()},
            "policy": {"kind": "ddp", "accumulate": whole},  # only the last step exchanges
            "communication": {"kind": "ring"},
        }
    )
    deadline = estimated_seconds([scenario]) + PATIENCE_SECONDS
    trace = measure(scenario, deadline_seconds=deadline, progress=report)
    return float(np.median(model_seconds(trace)[:-1]))
