"""How long a step of training takes when workers' times vary: the slowest of those waited for, then the bytes.

Of given compute times these formulas are exact; of random ones they give the mean over all draws, without any
simulation. Every function is about one step that all workers start together, so that steps add up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from distsim.arrays import Floats
from distsim.compute import Compute
from distsim.errors import InputError
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.order_statistics import (
    WorkerTime,
    expected_maximum_seconds,
    expected_order_statistic_seconds,
    integral_of_survival,
)


def worker_times(compute: Compute, workers: int, batch: int = 1) -> list[WorkerTime]:
    """The random seconds per step of workers 0 to workers - 1: their distribution, slow factor and pauses.

    A replayed table with a column per worker counts as independent draws from the columns; the means of the
    replay itself follow from its rows, by `ring_step_seconds` or `parameter_server_step_seconds`. Raises InputError
    where the table adds a model's own time, which these formulas do not know.

    >>> compute = Compute(distribution="exponential", mean="50 ms", slow={1: 2.0})
    >>> [time.mean_seconds for time in worker_times(compute, workers=2)]
    [0.05, 0.1]
    """
    if compute.added_seconds:
        raise InputError.of(
            "compute.added", compute.added_seconds, "is not part of these formulas", "leave it out, or simulate"
        )
    pauses = compute.pauses
    probability, seconds = (pauses.probability, pauses.duration_seconds) if pauses else (0.0, 0.0)
    return [
        WorkerTime(compute.of_worker(worker, batch), compute.slow_factor(worker), probability, seconds)
        for worker in range(workers)
    ]


def synchronous_step_seconds(times: Sequence[WorkerTime]) -> float:
    """The mean step of synchronous training, communication free: E[X_(n:n)], the mean of the slowest worker.

    Source: Dutta et al. 2018 (arXiv 1803.01113), fully synchronous SGD. times: one per worker.

    >>> from distsim.distributions import Exponential
    >>> round(synchronous_step_seconds([WorkerTime(Exponential(1.0))] * 8), 5)
    2.71786
    """
    return expected_maximum_seconds(times)


def cancelled_backup_step_seconds(times: Sequence[WorkerTime], backups: int) -> float:
    """The mean step with backup workers that are cancelled at the update, communication free: E[X_(K:n)], K = n - b.

    Source: Dutta et al. 2018 (arXiv 1803.01113), K-sync SGD. Backup workers that are not cancelled (Chen et
    al. 2016) start the next step late, and their step is no order statistic: it takes longer.

    times: one per worker, the backups included. backups: b, 0 to n - 1.

    >>> from distsim.distributions import Exponential
    >>> round(cancelled_backup_step_seconds([WorkerTime(Exponential(1.0))] * 8, backups=4), 5)
    0.63452
    """
    if not 0 <= backups < len(times):
        raise InputError.of("backups", backups, f"must be 0 to {len(times) - 1}", "leave a worker to wait for")
    return expected_order_statistic_seconds(times, len(times) - backups)


def ring_step_seconds(
    compute_seconds: Floats, num_bytes: float, bytes_per_second: float, latency_seconds: float
) -> Floats:
    """Synchronous steps with a ring all-reduce on equal links: max_i x_i + 2 (p - 1) (a + n / (p B)).

    A ring on equal links ends for all ranks together, 2 (p - 1) rounds after the last of them came.

    compute_seconds: x, shape (..., p): of each step, each worker's time. num_bytes: n. bytes_per_second: B.
    latency_seconds: a. Returns seconds per step, shape (...).

    >>> ring_step_seconds(np.array([[0.1, 0.3], [0.2, 0.1]]), 1e6, bytes_per_second=1e8, latency_seconds=0.0).round(9)
    array([0.31, 0.21])
    """
    workers = np.shape(compute_seconds)[-1]
    communication = ring_all_reduce_seconds(num_bytes, workers, bytes_per_second, latency_seconds)
    return np.asarray(np.max(compute_seconds, axis=-1) + communication)


def parameter_server_step_seconds(
    compute_seconds: Floats, num_bytes: float, bytes_per_second: float, latency_seconds: float
) -> Floats:
    """Synchronous steps with one parameter server on equal NICs:

        max over j of (x_(j) + a + (p - j) n / B) + p n / B + a,    j = 0 … p - 1, x_(0) <= x_(1) <= …

    The server's down-link is busy whenever a push is under way, however the pushes share it; so the last byte is
    in when, for the worst j, all from the j-th worker on have gone through. Then p answers share its up-link.
    (The queue behind it: Lindley 1952, The theory of queues with a single server.)

    compute_seconds: x, shape (..., p): of each step, each worker's time. num_bytes: n. bytes_per_second: B.
    latency_seconds: a. Returns seconds per step, shape (...).

    >>> parameter_server_step_seconds(np.array([[0.1, 0.3], [0.1, 0.1]]), 1e6, 1e8, latency_seconds=0.0).round(9)
    array([0.33, 0.14])
    """
    workers = np.shape(compute_seconds)[-1]
    transfer = num_bytes / bytes_per_second
    last_push = np.sort(compute_seconds, axis=-1) + transfer * np.arange(workers, 0, -1)
    return np.asarray(last_push.max(axis=-1) + workers * transfer + 2 * latency_seconds)


def expected_ring_step_seconds(
    times: Sequence[WorkerTime], num_bytes: float, bytes_per_second: float, latency_seconds: float
) -> float:
    """The mean of `ring_step_seconds` over all draws: E[X_(p:p)] + 2 (p - 1) (a + n / (p B)).

    times: one per worker. num_bytes: n. bytes_per_second: B. latency_seconds: a.

    >>> from distsim.distributions import Exponential
    >>> round(expected_ring_step_seconds([WorkerTime(Exponential(1.0))] * 8, 8e8, 1e9, latency_seconds=0.0), 5)
    4.11786
    """
    communication = ring_all_reduce_seconds(num_bytes, len(times), bytes_per_second, latency_seconds)
    return expected_maximum_seconds(times) + communication


def expected_parameter_server_step_seconds(
    time: WorkerTime, workers: int, num_bytes: float, bytes_per_second: float, latency_seconds: float
) -> float:
    """The mean of `parameter_server_step_seconds` over all draws, for workers that are alike.

    The last push is in by t when at least j of the p workers are ready by t - (p - j + 1) n / B, for every j: the
    probability that a sample's distribution function stays above a boundary, found by passing over the boundary's
    p points with a Poisson process that is conditioned on p arrivals (Moscovich and Nadler 2017, Fast calculation
    of boundary crossing probabilities for Poisson processes). Work grows as p^3: a second at p = 64.

    time: of each worker. workers: p. num_bytes: n. bytes_per_second: B. latency_seconds: a.

    >>> from distsim.distributions import Constant
    >>> round(expected_parameter_server_step_seconds(WorkerTime(Constant(0.1)), 4, 1e6, 1e8, latency_seconds=0.0), 9)
    0.18
    """
    transfer = num_bytes / bytes_per_second
    shifts = transfer * np.arange(workers, 0, -1)

    def still_pushing(t: Floats) -> Floats:
        flat = t.ravel()
        ready = 1.0 - time.survival(flat[:, None] - shifts)  # by each point of the boundary, shape (times, p)
        return (1.0 - _stays_above(ready)).reshape(t.shape)

    some_shifts = np.linspace(shifts[0], shifts[-1], min(workers, 8))
    bulk, kinks = time.mesh_seconds(2.0)[:, None] + some_shifts, time.kinks_seconds[:, None] + shifts
    mesh = np.unique(np.concatenate([bulk.ravel(), kinks.ravel()]))
    return integral_of_survival(still_pushing, mesh) + workers * transfer + 2 * latency_seconds


def _stays_above(ready: Floats) -> Floats:
    """P(of p alike workers at least j are ready at point j, for all j); ready: shape (times, p), rising along p."""
    workers = ready.shape[-1]
    counts = np.arange(workers + 1)
    log_factorial = special.gammaln(counts + 1.0)
    rises = workers * np.maximum(np.diff(ready, axis=-1, prepend=0.0), 0.0)  # mean arrivals; rounding never falls
    so_far = np.zeros((len(ready), workers + 1))
    so_far[:, 0] = 1.0
    for point in range(workers):  # so_far counts only from `point` on: fewer would be below the boundary
        mean = rises[:, point, None]
        arrivals = np.exp(special.xlogy(counts, mean) - mean - log_factorial)
        following = np.zeros_like(so_far)
        for more in range(workers + 1 - point):
            following[:, point + more :] += so_far[:, point : workers + 1 - more] * arrivals[:, more, None]
        so_far = following
    nobody_after = np.exp(-workers * (1.0 - ready[:, -1]))
    exactly_workers = np.exp(workers * np.log(workers) - workers - log_factorial[-1])
    return np.asarray(so_far[:, -1] * nobody_after / exactly_workers)
