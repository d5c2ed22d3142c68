"""Local SGD's period H: fewer averages are faster by the clock, and let the workers drift apart (Stich 2019).

The MLP on digits, 8 workers with batches of 4 around a ring of 10 Mbit/s, where an average takes as long as three steps
of one worker. With a longer period H

* a step takes less time, for H of them share one average, and one wait for the slowest (Wang and Joshi 2019);
* after as many *steps* the loss is higher: between averages each worker descends on its own few samples;
* after as many *averages*, which is what "update" means here, it is lower, for more steps lie between them.

By the clock the first two are weighed against each other, and the learning rate decides:

fast    at a rate of 0.5 workers drift far, and a period in between is best.
slow    at a fifth of it they hardly drift, and the longest period is best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distsim.learning.curve import Curve
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

PERIODS = (1, 4, 16, 64)
DECLARED = 16  # chosen before any of the seeds that judge it
FAST, SLOW = 0.5, 0.1  # learning rates
WORKERS, BATCH, TARGET = 8, 4, 0.2
MOST_STEPS = 768


def run(
    rate: float, period: int, seed: int, steps: int = MOST_STEPS, target: float | None = None, points: int = MOST_STEPS
) -> Curve:
    """The loss after averages, against updates and seconds, over so many local steps or until the target.

    points: after how many of the averages the loss is looked at.

    >>> curve = run(FAST, period=16, seed=1000, steps=64)
    >>> curve.update.tolist(), curve.effective_batch, bool(curve.loss[-1] < curve.loss[0])    # 16 x 8 x 4 samples
    ([0, 1, 2, 3, 4], 512.0, True)
    """
    trace = simulated(period, seed, steps)
    return replay(trace, TorchModel.of("mlp"), Sgd(rate), points=points, target=target)


def losses_after_steps(
    rate: float, seeds: Sequence[int], steps: int, periods: Sequence[int] = PERIODS
) -> NDArray[np.float64]:
    """The loss after so many steps of each worker; shape (periods, seeds)."""
    return np.array([[run(rate, period, seed, steps, points=1).loss[-1] for seed in seeds] for period in periods])


def losses_after_averages(
    rate: float, seeds: Sequence[int], averages: int, periods: Sequence[int] = PERIODS
) -> NDArray[np.float64]:
    """The loss after so many averages; shape (periods, seeds)."""
    return np.array(
        [[run(rate, period, seed, averages * period, points=1).loss[-1] for seed in seeds] for period in periods]
    )


def losses_at(
    rate: float, seeds: Sequence[int], seconds: float, periods: Sequence[int] = PERIODS
) -> NDArray[np.float64]:
    """The loss at this moment; shape (periods, seeds)."""

    def loss(period: int, seed: int) -> float:
        averages = int((simulated(period, seed).updates.time_seconds <= seconds).sum())
        return float(run(rate, period, seed, max(averages, 1) * period).loss_at(seconds))

    return np.array([[loss(period, seed) for seed in seeds] for period in periods])


def seconds_to_target(rate: float, seeds: Sequence[int], periods: Sequence[int] = PERIODS) -> NDArray[np.float64]:
    """When the loss after an average is first at or below 0.2; shape (periods, seeds), infinite where never."""
    curves = [[run(rate, period, seed, target=TARGET) for seed in seeds] for period in periods]
    return np.array([[curve.seconds_to(TARGET) for curve in row] for row in curves])


def simulated(period: int, seed: int, steps: int = MOST_STEPS) -> Trace:
    """The run that is replayed."""
    return simulate(
        Scenario.of(
            {
                "steps": steps,
                "seed": seed,
                "cluster": {"workers": WORKERS, "bandwidth": "10 Mbit/s", "latency": "100 us"},
                "compute": {"distribution": "exponential", "mean": "10 ms"},
                "workload": {"model": "mlp", "batch": BATCH},
                "policy": {"kind": "local_sgd", "period": period},
                "communication": {"kind": "ring"},
            }
        )
    )
