"""Checkpoints: the mean time of a run with failures, and whether the intervals of Young and Daly are near the best.

Sources: Young 1974, A first order approximation to the optimum checkpoint interval; Daly 2006, A higher order
estimate of the optimum checkpoint interval for restart dumps.
"""

from __future__ import annotations

import numpy as np

from distsim.accuracy.claim import Claim, at_most, on_average
from distsim.accuracy.free_communication import free
from distsim.arrays import Floats
from distsim.simulation import simulate
from distsim.theory.checkpointing import daly_interval_seconds, expected_run_seconds, young_interval_seconds
from distsim.units import write

SYSTEMS = ((60.0, 14400.0), (120.0, 3600.0), (300.0, 10800.0))  # (C of a checkpoint, M between failures), seconds
WORKERS = 4
RESTART_SECONDS = 30.0
STEPS_PER_INTERVAL = 10
RUN_INTERVALS = 20  # of Young's
SEEDS = 100


def claims() -> list[Claim]:
    """Runs of a fixed amount of work with the intervals of Young and Daly, three times Young's, and a third of it."""
    rows = []
    for checkpoint, between in SYSTEMS:
        system = f"C {checkpoint:g} s, M {between:g} s"
        young, daly = young_interval_seconds(checkpoint, between), daly_interval_seconds(checkpoint, between)
        work = RUN_INTERVALS * young
        by_young = _run_seconds(work, young, checkpoint, between)
        by_daly = _run_seconds(work, daly, checkpoint, between)
        rarely = _run_seconds(work, 3 * young, checkpoint, between)
        often = _run_seconds(work, young / 3, checkpoint, between)
        rows += [
            on_average(f"{system}, by Young", _expected(work, young, checkpoint, between), by_young),
            on_average(f"{system}, by Daly", _expected(work, daly, checkpoint, between), by_daly),
            at_most(f"{system}, Young ≤ 3 × as rarely", float(rarely.mean()), float(by_young.mean())),
            at_most(f"{system}, Young ≤ 3 × as often", float(often.mean()), float(by_young.mean())),
        ]
    return rows


def _expected(work: float, interval: float, checkpoint: float, between: float) -> float:
    whole = _steps(work, interval) * interval / STEPS_PER_INTERVAL
    return expected_run_seconds(whole, interval, checkpoint, RESTART_SECONDS, between)


def _steps(work: float, interval: float) -> int:
    """`work` in steps of a tenth of the interval."""
    return round(work / interval * STEPS_PER_INTERVAL)


def _run_seconds(work: float, interval: float, checkpoint: float, between: float) -> Floats:
    """The totals of `SEEDS` runs that write a checkpoint after each `interval` of work."""
    step = interval / STEPS_PER_INTERVAL
    failures = {
        "mean_time_between": write(WORKERS * between, "second"),  # of one worker
        # Due in the middle of a step, so that rounding cannot move a checkpoint to the next step.
        "checkpoint_every": write(interval - step / 2, "second"),
        "checkpoint_cost": write(checkpoint, "second"),
        "restart_cost": write(RESTART_SECONDS, "second"),
    }
    compute = {"mean": write(step, "second")}
    scenario = free({"kind": "synchronous"}, compute, WORKERS, _steps(work, interval), failures=failures)
    return np.array([simulate(scenario.replacing({"seed": seed})).total_seconds for seed in range(SEEDS)])
