"""Error against run time: asynchronous updates lead at first but end at a higher loss (Dutta et al. 2018).

The problem is the noisy quadratic, whose floors are known, on 8 workers with exponential compute times and free
communication. Asynchronous training makes 22 updates in the time of one synchronous update, so it leads at first. But
its updates are stale, and each has the noise of one sample, not of an average over eight. Updates by the first K of
the 8 workers, with the others cancelled, lie in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distsim.learning.curve import Curve
from distsim.learning.optimizers import Sgd
from distsim.learning.quadratic import Quadratic
from distsim.learning.replay import replay
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.descent import quadratic_floor
from distsim.theory.staleness import asynchronous_seconds_per_update
from distsim.theory.stragglers import cancelled_backup_step_seconds, worker_times
from distsim.trace import Trace

WORKERS, RATE, SECONDS = 8, 0.05, 4000.0
QUADRATIC = Quadratic(samples=2**17)  # more samples than any run here takes
POLICIES: dict[str, dict[str, Any]] = {
    "synchronous": {"kind": "backup", "backups": 0, "cancel": True},
    "4 of 8": {"kind": "backup", "backups": 4, "cancel": True},
    "2 of 8": {"kind": "backup", "backups": 6, "cancel": True},
    "asynchronous": {"kind": "asynchronous"},
}
EARLY, LATE = 100.0, 600.0  # seconds
SETTLED = 1500.0  # seconds after which the start has no effect, even in the flattest direction
POINTS = 800


def trace(name: str, seed: int, seconds: float = SECONDS) -> Trace:
    """One policy's run of about so many seconds."""
    scenario = _scenario(POLICIES[name], seed, steps=1)
    times = worker_times(scenario.compute, WORKERS)
    if name == "asynchronous":
        steps = seconds / asynchronous_seconds_per_update(times) / WORKERS
    else:
        steps = seconds / cancelled_backup_step_seconds(times, POLICIES[name]["backups"])
    return simulate(_scenario(POLICIES[name], seed, steps=round(steps)))


def learned(trace: Trace, rate: float = RATE) -> Curve:
    """The loss over a run. rate: the learning rate."""
    return replay(trace, QUADRATIC, Sgd(rate), points=POINTS)


def run(name: str, seed: int, seconds: float = SECONDS, rate: float = RATE) -> Curve:
    """One policy's loss over `seconds` of the clock. rate: the learning rate.

    >>> curve = run("synchronous", seed=1000, seconds=200.0)
    >>> bool(180.0 < curve.seconds[-1] < 220.0), bool(curve.loss[-1] < curve.loss[0])
    (True, True)
    """
    return learned(trace(name, seed, seconds), rate)


def losses(name: str, seeds: Sequence[int], moments: ArrayLike) -> NDArray[np.float64]:
    """The loss at these moments, in seconds; shape (seeds, moments)."""
    curves = [run(name, seed, float(np.max(moments)) * 1.1) for seed in seeds]
    return np.array([[curve.loss_at(moment) for moment in np.asarray(moments)] for curve in curves])


def floors(name: str, seeds: Sequence[int]) -> NDArray[np.float64]:
    """The floor of each run: the mean loss after the effect of the start has ended."""
    curves = [run(name, seed) for seed in seeds]
    return np.array([curve.loss[curve.seconds > SETTLED].mean() for curve in curves])


def predicted_floor(name: str, rate: float = RATE) -> float:
    """The floor in theory for fresh gradients. For asynchronous gradients it is too low, because they are stale.

    >>> round(predicted_floor("synchronous"), 4)
    0.0127
    """
    policy = POLICIES[name]
    batch = WORKERS - policy["backups"] if "backups" in policy else 1
    return quadratic_floor(QUADRATIC.curvature, QUADRATIC.curvature, rate, batch)


def _scenario(policy: dict[str, Any], seed: int, steps: int) -> Scenario:
    return Scenario.of(
        {
            "steps": steps,
            "seed": seed,
            "cluster": {"workers": WORKERS, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
            "compute": {"distribution": "exponential", "mean": "1 s"},
            "workload": {"gradient": "0 B"},
            "policy": policy,
            "communication": {"kind": "parameter_server"},
        }
    )
