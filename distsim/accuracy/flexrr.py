"""FlexRR with a persistent straggler and free communication: faster than stale synchronous training in the mean over
seeds, which is faster than synchronous training. There is no theorem for single runs (Harlap et al. 2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distsim.accuracy.claim import Claim, at_most
from distsim.accuracy.free_communication import free
from distsim.simulation import simulate

SEEDS = 20
STEPS = 20
STALENESS = (0, 1, 3)
COMPUTE = {"distribution": "lognormal", "mean": "10 ms", "cv": 0.3, "slow": {"2": 3.0}}


def claims() -> list[Claim]:
    """Mean seconds per step of six workers, one of them three times as slow."""
    synchronous = mean_step_seconds({"kind": "synchronous"})
    rows = []
    for staleness in STALENESS:
        stale = mean_step_seconds({"kind": "stale_synchronous", "staleness": staleness})
        flexrr = mean_step_seconds({"kind": "flexrr", "staleness": staleness, "group": 2})
        rows += [
            at_most(f"FlexRR({staleness}) ≤ stale synchronous({staleness})", stale, flexrr),
            at_most(f"stale synchronous({staleness}) ≤ synchronous", synchronous, stale),
        ]
    return rows


def mean_step_seconds(policy: dict[str, Any]) -> float:
    """The mean over `SEEDS` runs."""
    runs = [simulate(free(policy, COMPUTE, workers=6, steps=STEPS, seed=seed)) for seed in range(SEEDS)]
    return float(np.mean([run.total_seconds for run in runs])) / STEPS
