"""The mean step of training if workers' times vary: the step ends with the slowest worker that it waits for.

The formulas give the mean over all draws without simulation. All workers start a step together, so steps add up.
"""

from __future__ import annotations

from collections.abc import Sequence

from distsim.compute import Compute
from distsim.errors import InputError
from distsim.theory.order_statistics import (
    WorkerTime,
    expected_maximum_seconds,
    expected_order_statistic_seconds,
)


def worker_times(compute: Compute, workers: int, batch: int = 1) -> list[WorkerTime]:
    """The random seconds per step of workers 0 to workers - 1: their distribution, slow factor and pauses.

    A replayed table with a column per worker counts as independent draws from the columns. Raises InputError if the
    table adds a model's own time, which these formulas do not cover.

    >>> compute = Compute(distribution="exponential", mean="50 ms", slow={1: 2.0})
    >>> [time.mean_seconds for time in worker_times(compute, workers=2)]
    [0.05, 0.1]
    """
    if compute.added_seconds:
        raise InputError.of(
            "compute.added", compute.added_seconds, "is not covered by these formulas", "leave it out, or simulate"
        )
    pauses = compute.pauses
    probability, seconds = (pauses.probability, pauses.duration_seconds) if pauses else (0.0, 0.0)
    return [
        WorkerTime(compute.of_worker(worker, batch), compute.slow_factor(worker), probability, seconds)
        for worker in range(workers)
    ]


def synchronous_step_seconds(times: Sequence[WorkerTime]) -> float:
    """The mean step of synchronous training, communication free: E[X_(N:N)], the mean of the slowest worker.

    Source: Dutta et al. 2018 (arXiv 1803.01113), fully synchronous SGD. times: one per worker.

    >>> from distsim.distributions import Exponential
    >>> round(synchronous_step_seconds([WorkerTime(Exponential(1.0))] * 8), 5)
    2.71786
    """
    return expected_maximum_seconds(times)


def cancelled_backup_step_seconds(times: Sequence[WorkerTime], backups: int) -> float:
    """The mean step with backup workers that are cancelled at the update, communication free: E[X_(K:N)], K = N - b.

    Source: Dutta et al. 2018 (arXiv 1803.01113), K-sync SGD. Backup workers that are not cancelled (Chen et
    al. 2016) start the next step late. Their step is not an order statistic, and takes longer.

    times: one per worker, the backups included. backups: b, 0 to N - 1.

    >>> from distsim.distributions import Exponential
    >>> round(cancelled_backup_step_seconds([WorkerTime(Exponential(1.0))] * 8, backups=4), 5)
    0.63452
    """
    if not 0 <= backups < len(times):
        raise InputError.of("backups", backups, f"must be 0 to {len(times) - 1}", "wait for at least one worker")
    return expected_order_statistic_seconds(times, len(times) - backups)
