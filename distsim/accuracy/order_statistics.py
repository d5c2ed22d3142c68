"""Order statistics: a synchronous step lasts until the slowest worker is done, or with backups until the K-th is.

Source: Dutta et al. 2018, Slow and Stale Gradients Can Win the Race (arXiv 1803.01113).
"""

from __future__ import annotations

from distsim.accuracy.claim import Claim, on_average
from distsim.accuracy.free_communication import EXPONENTIAL, Table, free
from distsim.metrics import step_durations
from distsim.simulation import simulate
from distsim.theory.order_statistics import exponential_seconds
from distsim.theory.stragglers import cancelled_backup_step_seconds, worker_times

STEPS = 4000
# (workers N, gradients waited for K): exponential times of mean 1 s have the closed form H_N - H_(N-K).
EXPONENTIAL_CASES = (
    (4, 4), (8, 8), (16, 16), (32, 32), (100, 100), (8, 7), (8, 4), (100, 99), (100, 98), (100, 96),
)  # fmt: skip
# Others by the integral of the survival function; workers may differ and pause.
OTHER_CASES: dict[str, tuple[Table, int, int]] = {
    "0.5 s + Exp(0.5 s), 7 of 8": ({"distribution": "shifted_exponential", "mean": "1 s", "cv": 0.5}, 8, 7),
    "lognormal, cv 0.3, 16 of 16": ({"distribution": "lognormal", "mean": "1 s", "cv": 0.3}, 16, 16),
    "Pareto, alpha 3, 15 of 16": ({"distribution": "pareto", "mean": "1 s", "alpha": 3.0}, 16, 15),
    "lognormal, cv 0.4, one slow × 1.5, 8 of 8": (
        {"distribution": "lognormal", "mean": "1 s", "cv": 0.4, "slow": {"2": 1.5}}, 8, 8,
    ),
    "constant, pauses of 0.5 s at 2 %, 8 of 8": (
        {"mean": "1 s", "pauses": {"probability": 0.02, "duration": "500 ms"}}, 8, 8,
    ),
}  # fmt: skip


def claims() -> list[Claim]:
    """The mean of `STEPS` steps with free communication, beside the expression. Late workers are cancelled."""
    rows = [
        _mean_step(f"Exp(1 s), {k} of {workers}", EXPONENTIAL, workers, k, exponential_seconds(1.0, k, workers))
        for workers, k in EXPONENTIAL_CASES
    ]
    for case, (compute, workers, k) in OTHER_CASES.items():
        times = worker_times(free({"kind": "synchronous"}, compute, workers, STEPS).compute, workers)
        rows.append(_mean_step(case, compute, workers, k, cancelled_backup_step_seconds(times, workers - k)))
    return rows


def _mean_step(case: str, compute: Table, workers: int, k: int, expression: float) -> Claim:
    policy = {"kind": "backup", "backups": workers - k, "cancel": True} if k < workers else {"kind": "synchronous"}
    steps = step_durations(simulate(free(policy, compute, workers, STEPS))).seconds
    return on_average(case, expression, steps)
