"""How fast asynchronous training goes, and how stale its gradients are.

A gradient's staleness is the number of updates between the reading of its parameters and its application. Free
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

    For P workers alike E[X] / P: each delivers one gradient every E[X] seconds, whatever the distribution
    (the elementary renewal theorem; Dutta et al. 2018, arXiv 1803.01113, for asynchronous SGD).

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
    """Between what the long-run time from one update to the next lies with one server on equal NICs.

    t = n / B. A worker's cycle takes at least E[X_i] + r, r = 2 (a + t) + A, when nobody is in its way, and the
    server is busy with each gradient for its turn D:

        fifo, rendezvous    D = a + t + A      the latency is part of the turn
        fifo, eager         D = t + A          it is spent before
        concurrent          D = max(t, A)      updates go on while others arrive

    Lower bound max(D, 1 / sum of 1 / (E[X_i] + r)). Upper bound: every cycle finds all P - 1 others before it at the
    down-link, at the update and at the up-link. If all compute times are one constant and A = 0, a fifo server reaches
    the lower one, since the workers fall out of step and stay so; a concurrent one the upper, since they stay in step.
    Source: the asymptotic bounds of closed queueing networks, Denning and Buzen 1978, The operational analysis of
    queueing network models.

    times: one per worker, P of them. num_bytes: n, of a gradient and of the parameters. bytes_per_second: B.
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
        turn, crowded = max(transfer, work), latency + workers * (transfer + work)
    elif sends == "eager":
        turn, crowded = transfer + work, latency + workers * (transfer + work)
    else:
        turn, crowded = latency + transfer + work, workers * (latency + transfer + work)
    alone = 2 * (latency + transfer) + work
    crowded += latency + workers * transfer
    freely = 1.0 / math.fsum(1.0 / (time.mean_seconds + alone) for time in times)
    at_worst = 1.0 / math.fsum(1.0 / (time.mean_seconds + crowded) for time in times)
    return max(turn, freely), at_worst


def asynchronous_updates_speed_up(times: Sequence[WorkerTime]) -> float:
    """How many updates asynchronous training makes while synchronous training makes one: E[X_(P:P)] sum 1 / E[X_i].

    P H_P for exponential times (Dutta et al. 2018); but a synchronous update uses P gradients.

    >>> from distsim.distributions import Exponential
    >>> round(asynchronous_updates_speed_up([WorkerTime(Exponential(1.0))] * 8), 3)
    21.743
    """
    return expected_maximum_seconds(times) / asynchronous_seconds_per_update(times)


def asynchronous_gradients_speed_up(times: Sequence[WorkerTime]) -> float:
    """How many gradients asynchronous training uses while synchronous training uses one; H_P for exponential times.

    >>> from distsim.distributions import Exponential
    >>> round(asynchronous_gradients_speed_up([WorkerTime(Exponential(1.0))] * 8), 5)
    2.71786
    """
    return asynchronous_updates_speed_up(times) / len(times)


def mean_staleness(workers: int) -> float:
    """The mean staleness of asynchronous training in the long run: P - 1, whatever the times and the network.

    Each update ages the one gradient that every other worker has under way. (Gradients still under way at the end of
    a short run are not counted and are the stalest: drop its beginning, or expect a little less.)

    >>> mean_staleness(8)
    7.0
    """
    at_least(1, workers=workers)
    return workers - 1.0


def staleness_probability(staleness: int, workers: int) -> float:
    """P(a gradient's staleness is k) with exponential times, communication free: (1 / P) (1 - 1 / P)^k.

    Whoever is busy is equally likely to be next, so the number of others before one's own turn is geometric; fresh
    gradients have probability 1 / P. Source: Mitliagkas et al. 2016, Asynchrony begets momentum (arXiv 1605.09774).

    staleness: k >= 0. workers: P, all alike.

    >>> staleness_probability(0, workers=8), staleness_probability(1, workers=2)
    (0.125, 0.25)
    """
    at_least(0, staleness=staleness)
    at_least(1, workers=workers)
    return float((1.0 / workers) * (1.0 - 1.0 / workers) ** staleness)


def collision_share(touched: float, staleness: float) -> float:
    """The share of a sparse gradient that meets a parameter changed since it was read: 1 - (1 - q)^k.

    Each of the k updates in between touches a share q of the parameters, evenly and independently placed
    (the sparse setting of Recht et al. 2011, Hogwild!, arXiv 1106.5730).

    touched: q, 0 to 1. staleness: k.

    >>> round(collision_share(0.01, staleness=16), 4)
    0.1485
    """
    shares(touched=touched)
    at_least(0, staleness=staleness)
    return float(1.0 - (1.0 - touched) ** staleness)


def stale_synchronous_staleness_bound(workers: int, staleness: int) -> int:
    """The largest staleness in updates of a stale synchronous run: (P - 1) (2 s + 1).

    A worker begins a step only when nobody is more than s steps behind it, so clocks differ by at most s at that
    moment (Ho et al. 2013, More effective distributed ML via a stale synchronous parallel parameter server).
    While it computes on its clock c, each other goes at most from clock c - s to c + s + 1, one update a step.

    workers: P. staleness: s, the policy's bound in steps.

    >>> stale_synchronous_staleness_bound(workers=4, staleness=0), stale_synchronous_staleness_bound(4, 3)
    (3, 21)
    """
    at_least(1, workers=workers)
    at_least(0, staleness=staleness)
    return (workers - 1) * (2 * staleness + 1)


def stale_synchronous_step_seconds_bounds(times: Sequence[WorkerTime]) -> tuple[float, float]:
    """Between what the long-run time per step lies for any bound s, communication free: max E[X_i] and E[max X_i].

    With s = 0 every step waits for the slowest draw; with any finite s nobody can leave the slowest worker behind
    for good, so its mean remains. More slack never makes a run slower (its recurrence is monotone; Ho et al. 2013).

    times: one per worker.

    >>> from distsim.distributions import Exponential
    >>> fast, slow = WorkerTime(Exponential(1.0)), WorkerTime(Exponential(1.0), slow_factor=2.0)
    >>> lower, upper = stale_synchronous_step_seconds_bounds([fast, slow])
    >>> lower, round(upper, 5)
    (2.0, 2.33333)
    """
    return max(time.mean_seconds for time in times), expected_maximum_seconds(times)
