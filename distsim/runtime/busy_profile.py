"""Adds to a profile what short real runs tell: a step under DDP, and the pace of busy cores.

Three kinds of launches take turns: one worker, a worker for each core, and two workers on one core. They exchange
nothing. Times differ from launch to launch, by 20 % at times, so each kind is launched three times.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.calibration.exchange import WARM_UP_STEPS
from distsim.calibration.plan import NOMINAL_LINKS, model_seconds
from distsim.profile import BusyCores, Profile
from distsim.progress import Report
from distsim.runtime.machine import usable_cores
from distsim.runtime.measure import estimated_seconds, measure_all
from distsim.scenario import Scenario
from distsim.trace import Trace
from distsim.units import write

MOST_WORKERS = 4  # each holds the model, its gradients and a batch
LAUNCHES = 3  # of each kind
STEPS = 20
PATIENCE_SECONDS = 300.0  # beyond the deadline of such a run: a busy machine spoils the pace, but not the profile


def with_busy_cores(
    found: Profile, spec: str, *, workers: int | None = None, steps: int = STEPS, report: Report | None = None
) -> Profile:
    """The profile `found` of the model "my_model.py:build" with its step under DDP and the pace of busy cores.

    workers: at once, by default as many as this machine has cores, at most 4; with one there is nothing to measure.
    steps: of each launch that count, after a warm-up. report: called with each `Phase`. Raises InputError and RunError
    as `measure` does.
    """
    workers = min(usable_cores(), MOST_WORKERS) if workers is None else workers
    if workers < 2 or found.device != "cpu":
        return found
    turns = [_turn(found, spec, workers, steps, report) for _ in range(LAUNCHES)]
    alone, under_ddp, together, sharing = np.median(turns, axis=0).tolist()
    shared_pace = None if np.isnan(sharing) else 2 * alone / sharing
    busy = BusyCores(workers, alone / together, shared_pace)
    return replace(found, ddp_seconds=under_ddp, busy=busy)


def _turn(found: Profile, spec: str, workers: int, steps: int, report: Report | None) -> list[float]:
    """Seconds: of forward and backward alone; of a step under DDP; of forward and backward together; of two on a core.

    The step under DDP is without the call of the all-reduce, which a calibration measures.

    The last is NaN where processes cannot be bound to a core.
    """
    lone, ddp = _runs([_scenario(found, spec, 1, steps, exchanges=exchanges) for exchanges in (False, True)], report)
    (together,) = _runs([_scenario(found, spec, workers, steps, exchanges=False)], report)
    sharing = np.full(1, np.nan)
    if hasattr(os, "sched_setaffinity"):
        with _one_core():
            (two,) = _runs([_scenario(found, spec, 2, steps, exchanges=False)], report)
        sharing = _computing(two)
    calls = np.asarray(ddp.metadata["exchange_core_seconds"])  # one for each step: all gradients are in one bucket
    step = (np.diff(ddp.updates.time_seconds) - calls[1:])[WARM_UP_STEPS:]
    return [float(np.median(seconds)) for seconds in (_computing(lone), step, _computing(together), sharing)]


def _computing(trace: Trace) -> Floats:
    """Forward and backward of the slowest worker in each step, but the last, which exchanges."""
    return model_seconds(trace)[:-1]


def _runs(scenarios: list[Scenario], report: Report | None) -> list[Trace]:
    return measure_all(
        scenarios, deadline_seconds=estimated_seconds(scenarios) + PATIENCE_SECONDS, progress=report,
        called=[scenario.name for scenario in scenarios],
    )  # fmt: skip


def _scenario(found: Profile, spec: str, workers: int, steps: int, *, exchanges: bool) -> Scenario:
    """A run under DDP in one bucket that exchanges in each step, or only in the last."""
    whole = WARM_UP_STEPS + steps + 1
    bucket = write(float(found.gradient_bytes), "byte")
    policy: dict[str, Any] = {
        "kind": "ddp", "accumulate": 1 if exchanges else whole, "bucket": bucket, "first_bucket": bucket,
    }  # fmt: skip
    return Scenario.of(
        {
            "name": f"{workers} at once",
            "steps": whole,
            "cluster": {"workers": workers, **NOMINAL_LINKS},
            "workload": {"model": spec, "profile": found.as_dict()},
            "policy": policy,
            "communication": {"kind": "ring"},
        }
    )


@contextmanager
def _one_core() -> Iterator[None]:
    """This thread, and the processes that it starts meanwhile, run on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
