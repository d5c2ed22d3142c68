"""Local SGD: what a longer period H between averages costs in steps, and what it brings in rounds (Stich 2019).

The MLP on digits, 8 workers with batches of 4. After the same number of local steps a longer period has a higher loss,
for the workers drift apart between averages; from H = 1 to 4 by about 0.01, hardly more than 20 seeds can tell. After
the same number of averages, which are what communication costs, it has a lower one, for it has made more steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distsim.learning.network import Network
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.scenario import Scenario
from distsim.simulation import simulate

PERIODS = (1, 4, 16, 64)
WORKERS, BATCH, RATE = 8, 4, 0.5
STEPS, ROUNDS = 256, 16


def after_steps(seeds: Sequence[int], periods: Sequence[int] = PERIODS, steps: int = STEPS) -> NDArray[np.float64]:
    """The loss over all samples after so many local steps of each worker; shape (periods, seeds)."""
    return np.array([[_loss(period, steps, seed) for seed in seeds] for period in periods])


def after_rounds(seeds: Sequence[int], periods: Sequence[int] = PERIODS, rounds: int = ROUNDS) -> NDArray[np.float64]:
    """The loss over all samples after so many averages; shape (periods, seeds).

    >>> often, seldom = after_rounds(seeds=[1000], periods=[1, 16], rounds=4)
    >>> bool(seldom[0] < often[0])
    True
    """
    return np.array([[_loss(period, rounds * period, seed) for seed in seeds] for period in periods])


def _loss(period: int, steps: int, seed: int) -> float:
    scenario = Scenario.of(
        {
            "steps": steps,
            "seed": seed,
            "cluster": {"workers": WORKERS, "bandwidth": "1 Gbit/s", "latency": "100 us"},
            "compute": {"distribution": "constant", "mean": "10 ms"},
            "workload": {"model": "mlp", "batch": BATCH},
            "policy": {"kind": "local_sgd", "period": period},
            "communication": {"kind": "ring"},
        }
    )
    return float(replay(simulate(scenario), Network.of("mlp"), Sgd(RATE), points=1).loss[-1])
