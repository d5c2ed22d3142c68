"""Local SGD: a round lasts as long as the slowest worker's local steps together, and then one all-reduce.

Source: Wang and Joshi 2019, Adaptive communication strategies to achieve the best error-runtime trade-off in
local-update SGD (arXiv 1810.08313).
"""

from __future__ import annotations

import numpy as np

from distsim.accuracy.claim import Claim, on_average
from distsim.accuracy.free_communication import EXPONENTIAL, free
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.local_sgd import exponential_local_step_seconds, local_sgd_step_seconds

PERIODS = (1, 10, 50)
ROUNDS = 400
RING_STEPS = 1600


def claims() -> list[Claim]:
    """Seconds per local step with exponential times: first without communication, then with a ring all-reduce."""
    rows = []
    for period in PERIODS:
        policy = {"kind": "local_sgd", "period": period}
        scenario = free(policy, EXPONENTIAL, workers=16, steps=ROUNDS * period)
        expression = exponential_local_step_seconds(1.0, 16, period)
        rows.append(_mean_local_step(f"N = 16, Exp(1 s), free, every {period}", scenario, period, expression))
    for period in (1, 8):
        scenario = Scenario.of(
            {
                "steps": RING_STEPS,
                "seed": 11,
                "cluster": {"workers": 6, "bandwidth": "1 Gbit/s", "latency": "100 us"},
                "compute": {"distribution": "exponential", "mean": "20 ms"},
                "workload": {"gradient": "1 MiB"},
                "policy": {"kind": "local_sgd", "period": period},
                "communication": {"kind": "ring"},
            }
        )
        all_reduce = ring_all_reduce_seconds(2**20, 6, 1.25e8, 1e-4)
        expression = local_sgd_step_seconds(exponential_local_step_seconds(0.02, 6, period), all_reduce, period)
        case = f"N = 6, Exp(20 ms), 1 MiB ring every {period}"
        rows.append(_mean_local_step(case, scenario, period, expression))
    return rows


def _mean_local_step(case: str, scenario: Scenario, period: int, expression: float) -> Claim:
    """The mean local step beside its expression. Rounds are independent, and a round is the time between updates."""
    rounds = np.diff(simulate(scenario).updates.time_seconds, prepend=0.0)
    return on_average(case, expression, rounds / period)
