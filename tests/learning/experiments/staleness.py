"""What staleness does to the loss: fixed delays, and a real asynchronous run whose delays have about the same mean.

The MLP on digits, plain SGD. All runs of one seed see the same samples in the same order; they differ in nothing but
how old the parameters are that their gradients were computed on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distsim.learning.delays import delayed
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.scenario import Scenario
from distsim.simulation import simulate

DELAYS = (0, 3, 7, 15, 31)
BATCH, RATE, UPDATES = 32, 0.04, 500


def of_fixed_delays(seeds: Sequence[int], delays: Sequence[int] = DELAYS) -> NDArray[np.float64]:
    """The loss over all samples at the end, shape (delays, seeds).

    >>> of_fixed_delays(seeds=[1000], delays=[0, 31]).round(1).tolist()
    [[0.5], [2.0]]
    """
    return np.array([[_loss(np.full(UPDATES, delay), seed) for seed in seeds] for delay in delays])


def of_asynchronous_runs(seeds: Sequence[int], workers: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same with the delays of an asynchronous run of so many workers; of each run the loss and the mean staleness.

    Compute times are exponential and communication is free, so that staleness is geometric: most gradients are
    fresher than the mean, which few very late ones make. A worker's first gradients are fresher still.
    """
    losses, means = [], []
    for seed in seeds:
        staleness = simulate(_asynchronous(workers, seed)).contributions.staleness[-UPDATES:]
        # The first one cannot be older than the start.
        means.append(np.minimum(staleness, np.arange(UPDATES)).mean())
        losses.append(_loss(staleness, seed))
    return np.array(losses), np.array(means)


def _loss(staleness: NDArray[np.int64], seed: int) -> float:
    curve = replay(delayed(staleness, BATCH, seed), TorchModel.of("mlp"), Sgd(RATE), points=1)
    return float(curve.loss[-1])


def _asynchronous(workers: int, seed: int) -> Scenario:
    """Long enough that its last updates are no longer those of a beginning."""
    return Scenario.of(
        {
            "steps": -(-2 * UPDATES // workers),
            "seed": seed,
            "cluster": {"workers": workers, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
            "compute": {"distribution": "exponential", "mean": "1 s"},
            "workload": {"gradient": "0 B"},
            "policy": {"kind": "asynchronous"},
            "communication": {"kind": "parameter_server"},
        }
    )
