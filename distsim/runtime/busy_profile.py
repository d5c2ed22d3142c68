"""Adds to a profile what short real runs tell: a step under DDP, and the pace of busy cores.

Three kinds of launches take turns: one worker, a worker for each core, and four workers on two cores. They exchange
nothing. Times differ from launch to launch, by 20 % at times, so each kind is launched three times by default.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.calibration.exchange import WARM_UP_STEPS
from distsim.calibration.plan import NOMINAL_LINKS
from distsim.calibration.probe_times import model_seconds
from distsim.profile import BusyCores, Profile
from distsim.progress import Report, part
from distsim.runtime.expected_time import expected_seconds
from distsim.runtime.machine import usable_cores
from distsim.runtime.measure import estimated_seconds, measure_all
from distsim.scenario import Scenario
from distsim.trace import Trace
from distsim.units import write

MOST_WORKERS = 4  # each holds the model, its gradients and a batch
SHARED_CORES = MOST_WORKERS // 2
LAUNCHES = 3  # of each kind
STEPS = 20
PATIENCE_SECONDS = 300.0  # beyond the deadline of such a run: a busy machine spoils the pace, but not the profile


def with_busy_cores(
    found: Profile, spec: str, *, workers: int | None = None, steps: int = STEPS, launches: int = LAUNCHES,
    report: Report | None = None,
) -> Profile:  # fmt: skip
    """The profile `found` of the model "my_model.py:build" with its step under DDP and the pace of busy cores.

    workers: with a core each, by default as many as this machine has, at most 4; with one there is nothing to measure.
    steps: of each launch that count, after a warm-up. launches: of each kind. report: called with each `Phase`. Raises
    InputError and RunError as `measure` does.
    """
    workers = min(usable_cores(), MOST_WORKERS) if workers is None else workers
    if workers < 2 or found.device != "cpu":
        return found
    lone, ddp = (_scenario(found, spec, 1, steps, exchanges=exchanges) for exchanges in (False, True))
    together = _scenario(found, spec, workers, steps, exchanges=False)
    kinds = [_Launch([lone, ddp]), _Launch([together])]
    if hasattr(os, "sched_setaffinity"):
        kinds.append(_Launch([_scenario(found, spec, MOST_WORKERS, steps, exchanges=False)], shared_cores=True))
    turns = np.median([_times(traces) for traces in _in_turns(kinds, launches, report)], axis=0).tolist()
    alone, under_ddp, side_by_side, *sharing = turns
    cores = usable_cores()
    own, shared = workers / min(workers, cores), MOST_WORKERS / min(SHARED_CORES, cores)  # workers on each core
    busy = BusyCores(workers, own * alone / side_by_side, shared * alone / sharing[0] if sharing else None)
    return replace(found, ddp_seconds=under_ddp, busy=busy)


@dataclass(frozen=True)
class _Launch:
    """Scenarios that are run one after the other. shared_cores: by ranks that outnumber the cores that they get."""

    scenarios: list[Scenario]
    shared_cores: bool = False

    def run(self, report: Report | None) -> list[Trace]:
        deadline = estimated_seconds(self.scenarios) + PATIENCE_SECONDS
        called = [scenario.name for scenario in self.scenarios]
        with _few_cores() if self.shared_cores else nullcontext():
            return measure_all(self.scenarios, deadline_seconds=deadline, progress=report, called=called)


def _in_turns(kinds: list[_Launch], turns: int, report: Report | None) -> Iterator[list[Trace]]:
    """The traces of each turn. report: is told of one run out of all."""
    expected = turns * sum(expected_seconds(launch.scenarios) for launch in kinds)
    runs = itertools.count()

    def told() -> Report | None:
        done = next(runs)
        return None if report is None else part(report, "run", done, turns * len(kinds), expected)

    for _ in range(turns):
        yield [trace for launch in kinds for trace in launch.run(told())]


def _times(traces: list[Trace]) -> list[float]:
    """Seconds: of forward and backward alone; of a step under DDP; of forward and backward together; on shared cores.

    The step under DDP is without the call of the all-reduce, which a calibration measures. The last is missing where
    processes cannot be bound to a core.
    """
    lone, ddp, *others = traces
    calls = np.asarray(ddp.metadata["exchange_core_seconds"])  # one for each step: all gradients are in one bucket
    step = (np.diff(ddp.updates.time_seconds) - calls[1:])[WARM_UP_STEPS:]
    return [float(np.median(seconds)) for seconds in (_computing(lone), step, *map(_computing, others))]


def _computing(trace: Trace) -> Floats:
    """Forward and backward of the slowest worker in each step, but the last, which exchanges."""
    return model_seconds(trace)[:-1]


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
def _few_cores() -> Iterator[None]:
    """This thread, and the processes that it starts meanwhile, run on `SHARED_CORES` cores."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:SHARED_CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
