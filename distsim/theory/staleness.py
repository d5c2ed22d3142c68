"""The update rate of asynchronous training, and the staleness of its gradients.

A gradient's staleness is the number of updates between reading the parameters and applying the gradient. Free
communication means that a push, an update and a pull take no time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from distsim.theory.arguments import above, at_least, shares
from distsim.theory.order_statistics import WorkerTime, expected_maximum_seconds


def asynchronous_seconds_per_update(times: Sequence[WorkerTime]) -> float:
    """The long-run time from one update to the next, communication free: 1 / sum over workers of 1 / E[X_i].

    For N equal workers E[X] / N: each worker delivers one gradient every E[X] seconds, for any distribution (the
    elementary renewal theorem; Dutta et al. 2018, arXiv 1803.01113, for asynchronous SGD).

    times: one per worker.

    >>> from distsim.distributions import Lognormal
    >>> asynchronous_seconds_per_update([WorkerTime(Lognormal(0.08, 0.3))] * 8)
    0.01
    """
    return 1.0 / math.fsum(1.0 / time.mean_seconds for time in times)


def asynchronous_seconds_per_update_bounds(
    times: Sequence[WorkerTime],
    num_bytes: float,
    bytes_per_second: float,
    latency_seconds: float,
    apply_seconds: float = 0.0,
    receive: Literal["fifo", "concurrent"] = "fifo",
    sends: Literal["rendezvous", "eager"] = "rendezvous",
) -> tuple[float, float]:
    """Lower and upper bound of the long-run time from one update to the next, with one server on equal NICs.

    t = n / B. Without waiting, a worker's cycle takes E[X_i] + r, r = 2 (a + t) + A. The server is busy with each
    gradient for its service time D:

        fifo, rendezvous    D = a + t + A      the latency is part of the service time
        fifo, eager         D = t + A          the latency passes before the service
        concurrent          D = max(t, A)      updates overlap with other pushes

    Lower bound max(D, 1 / sum of 1 / (E[X_i] + r)). Upper bound: in every cycle all N - 1 others are ahead at the
    down-link, at the update and at the up-link. If all compute times are one constant and A = 0, a fifo server reaches
    the lower bound, since its workers get out of step; a concurrent server reaches the upper bound, since its workers
    stay in step.
    Source: the asymptotic bounds of closed queueing networks, Denning and Buzen 1978, The operational analysis of
    queueing network models.

    times: one per worker, N of them. num_bytes: n, of a gradient and of the parameters. bytes_per_second: B.
    latency_seconds: a. apply_seconds: A, the server's own work per update. receive, sends: as in a scenario.

    >>> from distsim.distributions import Constant
    >>> lower, upper = asynchronous_seconds_per_update_bounds([WorkerTime(Constant(0.1))] * 4, 1e6, 1e8, 0.0)
    >>> round(lower, 9), round(upper, 9)    # (0.1 + 2 x 0.01) / 4 and (0.1 + 8 x 0.01) / 4
    (0.03, 0.045)
    """
    at_least(0, num_bytes=num_bytes, latency_seconds=latency_seconds, apply_seconds=apply_seconds)
    above(0, bytes_per_second=bytes_per_second)
    transfer, latency, work = num_bytes / bytes_per_second, latency_seconds, apply_seconds
    workers = len(times)
    if receive == "concurrent":
        service, longest = max(transfer, work), latency + workers * (transfer + work)
    elif sends == "eager":
        service, longest = transfer + work, latency + workers * (transfer + work)
    else:
        service, longest = latency + transfer + work, workers * (latency + transfer + work)
    alone = 2 * (latency + transfer) + work
    longest += latency + workers * transfer
    freely = 1.0 / math.fsum(1.0 / (time.mean_seconds + alone) for time in times)
    at_worst = 1.0 / math.fsum(1.0 / (time.mean_seconds + longest) for time in times)
    return max(service, freely), at_worst


def asynchronous_updates_speed_up(times: Sequence[WorkerTime]) -> float:
    """Updates of asynchronous training per update of synchronous training: E[X_(N:N)] sum 1 / E[X_i].

    N H_N for exponential times (Dutta et al. 2018). A synchronous update uses N gradients.

    >>> from distsim.distributions import Exponential
    >>> round(asynchronous_updates_speed_up([WorkerTime(Exponential(1.0))] * 8), 3)
    21.743
    """
    return expected_maximum_seconds(times) / asynchronous_seconds_per_update(times)


def asynchronous_gradients_speed_up(times: Sequence[WorkerTime]) -> float:
    """Gradients of asynchronous training per gradient of synchronous training; H_N for exponential times.

    >>> from distsim.distributions import Exponential
    >>> round(asynchronous_gradients_speed_up([WorkerTime(Exponential(1.0))] * 8), 5)
    2.71786
    """
    return asynchronous_updates_speed_up(times) / len(times)


def mean_staleness(workers: int) -> float:
    """The mean staleness of asynchronous training in the long run: N - 1, for any times and any network.

    Each update makes the gradients that the other workers compute one update older. (At the end of a run the stalest
    gradients are not yet applied, so the mean of a short run is a little lower.)

    >>> mean_staleness(8)
    7.0
    """
    at_least(1, workers=workers)
    return workers - 1.0


def implicit_momentum(workers: int) -> float:
    """The momentum that asynchrony adds to the mean of descent, with exponential times, communication free: 1 - 1 / N.

    E[w(t+1) - w(t)] = (1 - 1 / N) E[w(t) - w(t-1)] - (eta / N) E[gradient at w(t)], with eta the learning rate. Each
    probability of the geometric staleness is 1 - 1 / N times the one before. So the gradients that are not fresh
    repeat, on average, the step before times this factor. Source: Mitliagkas et al. 2016, Asynchrony begets momentum
    (arXiv 1605.09774).

    workers: N, all equal.

    >>> implicit_momentum(1), implicit_momentum(8)
    (0.0, 0.875)
    """
    at_least(1, workers=workers)
    return 1.0 - 1.0 / workers


def staleness_probability(staleness: int, workers: int) -> float:
    """P(a gradient's staleness is k) with exponential times, communication free: (1 / N) (1 - 1 / N)^k.

    Every worker is equally likely to finish next, so the number of updates by others is geometric; fresh gradients have
    probability 1 / N. Source: Mitliagkas et al. 2016, Asynchrony begets momentum (arXiv 1605.09774).

    staleness: k >= 0. workers: N, all equal.

    >>> staleness_probability(0, workers=8), staleness_probability(1, workers=2)
    (0.125, 0.25)
    """
    at_least(0, staleness=staleness)
    at_least(1, workers=workers)
    return float((1.0 / workers) * (1.0 - 1.0 / workers) ** staleness)


def collision_share(touched: float, staleness: float) -> float:
    """The share of a sparse gradient that applies to parameters changed since they were read: 1 - (1 - q)^k.

    Each of the k updates in between changes a share q of the parameters, chosen uniformly and independently
    (the sparse setting of Recht et al. 2011, Hogwild!, arXiv 1106.5730).

    touched: q, 0 to 1. staleness: k.

    >>> round(collision_share(0.01, staleness=16), 4)
    0.1485
    """
    shares(touched=touched)
    at_least(0, staleness=staleness)
    return float(1.0 - (1.0 - touched) ** staleness)


def stale_synchronous_staleness_bound(workers: int, staleness: int) -> int:
    """The largest staleness in updates of a stale synchronous run: (N - 1) (2 s + 1).

    A worker at clock c begins a step only if every other worker is at clock c - s or later (Ho et al. 2013, More
    effective distributed ML via a stale synchronous parallel parameter server). When the step ends, every other worker
    is at most at clock c + s + 1. So each other worker makes at most 2 s + 1 updates in between.

    workers: N. staleness: s, the policy's bound in steps.

    >>> stale_synchronous_staleness_bound(workers=4, staleness=0), stale_synchronous_staleness_bound(4, 3)
    (3, 21)
    """
    at_least(1, workers=workers)
    at_least(0, staleness=staleness)
    return (workers - 1) * (2 * staleness + 1)


def stale_synchronous_step_seconds_bounds(times: Sequence[WorkerTime]) -> tuple[float, float]:
    """Lower and upper bound of the long-run time per step for any s, communication free: max E[X_i], E[max X_i].

    With s = 0 every step waits for the slowest draw. With any finite s no worker gets far ahead of the slowest worker,
    so the slowest mean is the limit. A larger s never makes a run slower (the recurrence is monotone; Ho et al. 2013).

    times: one per worker.

    >>> from distsim.distributions import Exponential
    >>> fast, slow = WorkerTime(Exponential(1.0)), WorkerTime(Exponential(1.0), slow_factor=2.0)
    >>> lower, upper = stale_synchronous_step_seconds_bounds([fast, slow])
    >>> lower, round(upper, 5)
    (2.0, 2.33333)
    """
    return max(time.mean_seconds for time in times), expected_maximum_seconds(times)
