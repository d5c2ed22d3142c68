"""Time to a target loss against the number of backup workers: variance against waiting (Chen et al. 2016).

An update waits for 16 - b of 16 workers. One more backup worker means less waiting for stragglers. It also means a
gradient of fewer samples, whose higher variance needs more updates. The setting decides which effect is larger:

stragglers    pauses of ten steps' time, and a learning rate near the largest usable one: in between is best.
even          all steps take the same time: there is nothing to gain by not waiting.
calm          the same pauses, and a fifth of the learning rate. The steps are so small that the noise averages out:
              updates of half the workers are as good as those of all, and more backups always look better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

WORKERS, BATCH, MOMENTUM, TARGET = 16, 4, 0.9, 0.1
DECLARED = 4  # backups, chosen before any of the seeds that judge it
MOST_UPDATES = 800


@dataclass(frozen=True)
class Setting:
    """compute: the scenario's table of compute times. rate: the learning rate."""

    compute: dict[str, Any]
    rate: float


_PAUSES = {
    "distribution": "lognormal", "mean": "1 s", "cv": 0.3, "pauses": {"probability": 0.03, "duration": "10 s"},
}  # fmt: skip
STRAGGLERS = Setting(_PAUSES, rate=0.25)
EVEN = Setting({"distribution": "constant", "mean": "1 s"}, rate=0.25)
CALM = Setting(_PAUSES, rate=0.05)


def seconds_to_target(setting: Setting, backups: Sequence[int], seeds: Sequence[int]) -> NDArray[np.float64]:
    """Seconds until the MLP's loss over all samples is first at or below 0.1; (backups, seeds), infinite if never.

    Late workers are cancelled at the update. Communication is free.

    >>> all_of_them, twelve = seconds_to_target(STRAGGLERS, backups=[0, DECLARED], seeds=[1000])
    >>> bool(twelve[0] < all_of_them[0])
    True
    """
    return np.array([[_seconds(setting, number, seed) for seed in seeds] for number in backups])


def _seconds(setting: Setting, backups: int, seed: int) -> float:
    curve = replay(
        run(setting, backups, seed),
        TorchModel.of("mlp"),
        Sgd(setting.rate, MOMENTUM),
        points=MOST_UPDATES,
        target=TARGET,
    )
    return curve.seconds_to(TARGET)


def run(setting: Setting, backups: int, seed: int) -> Trace:
    """The simulated run that is replayed."""
    return simulate(
        Scenario.of(
            {
                "steps": MOST_UPDATES,
                "seed": seed,
                "cluster": {"workers": WORKERS, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
                "compute": setting.compute,
                "workload": {"gradient": "0 B", "batch": BATCH},
                "policy": {"kind": "backup", "backups": backups, "cancel": True},
                "communication": {"kind": "parameter_server"},
            }
        )
    )
