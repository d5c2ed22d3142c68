"""Speed-up by more workers: the samples per second of N workers over those of one worker.

Every model here is one formula, S(N) = N / (1 + r g(N)). Communication or serial work adds the share r to one worker's
step, and g says how this share grows with N.

    serial      g = N - 1              Amdahl 1967: r is the serial share of the work
    ring        g = 2 (N - 1) / N      bytes of a ring all-reduce; r = n / (B x)
    server      g = 2 N                bytes through one parameter server's link, push and pull; r = n / (B x)

n bytes of gradient, B bytes per second of a link, x seconds of compute on one worker.
"""

from __future__ import annotations

from collections.abc import Callable

from distsim.errors import InputError
from distsim.theory.arguments import above, at_least, shares
from distsim.theory.collectives import parameter_server_seconds, ring_all_reduce_seconds

GROWTHS: dict[str, Callable[[int], float]] = {
    "serial": lambda p: p - 1.0,
    "ring": lambda p: 2.0 * (p - 1) / p,
    "server": lambda p: 2.0 * p,
}


def amdahl_speed_up(serial_share: float, workers: int) -> float:
    """The speed-up of a fixed amount of work: 1 / (s + (1 - s) / N), never above 1 / s.

    Source: Amdahl 1967, Validity of the single processor approach to achieving large scale computing capabilities.

    serial_share: s, 0 to 1. workers: N.

    >>> amdahl_speed_up(0.1, workers=9)
    5.0
    """
    shares(serial_share=serial_share)
    at_least(1, workers=workers)
    return 1 / (serial_share + (1 - serial_share) / workers)


def universal_speed_up(serial_share: float, pairwise_share: float, workers: int) -> float:
    """Amdahl's law and a cost per pair of workers: N / (1 + s (N - 1) + k N (N - 1)). For large N the speed-up falls.

    Source: Gunther 2008, A general theory of computational scalability based on rational functions (arXiv 0808.1431).

    serial_share: s, of one worker's time. pairwise_share: k, the same. workers: N.

    >>> round(universal_speed_up(0.1, 0.0, workers=9), 9)    # Amdahl
    5.0
    >>> [round(universal_speed_up(0.0, 0.01, workers), 1) for workers in (5, 10, 20)]
    [4.2, 5.3, 4.2]
    """
    shares(serial_share=serial_share)
    at_least(0, pairwise_share=pairwise_share)
    at_least(1, workers=workers)
    return workers / (1 + serial_share * (workers - 1) + pairwise_share * workers * (workers - 1))


def weak_speed_up(compute_seconds: float, communication_seconds: float, workers: int) -> float:
    """Speed-up with the same batch per worker: N x / (x + c).

    compute_seconds: x, of one worker's step. communication_seconds: c, exposed, per step on N workers. workers: N.

    >>> round(weak_speed_up(0.3, communication_seconds=0.1, workers=4), 9)
    3.0
    """
    above(0, compute_seconds=compute_seconds)
    at_least(0, communication_seconds=communication_seconds)
    at_least(1, workers=workers)
    return workers * compute_seconds / (compute_seconds + communication_seconds)


def strong_speed_up(compute_seconds: float, communication_seconds: float, workers: int) -> float:
    """Speed-up with one batch divided among the workers: x / (x / N + c).

    compute_seconds: x, of the whole batch on one worker. communication_seconds: c. workers: N.

    >>> round(strong_speed_up(0.3, communication_seconds=0.1, workers=4), 6)
    1.714286
    """
    above(0, compute_seconds=compute_seconds)
    at_least(0, communication_seconds=communication_seconds)
    at_least(1, workers=workers)
    return compute_seconds / (compute_seconds / workers + communication_seconds)


def efficiency(speed_up: float, workers: int) -> float:
    """Speed-up per worker: S / N.

    >>> efficiency(3.0, workers=4)
    0.75
    """
    at_least(0, speed_up=speed_up)
    at_least(1, workers=workers)
    return speed_up / workers


def ring_speed_up(
    compute_seconds: float, num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float
) -> float:
    """`weak_speed_up` with a ring all-reduce after every step, nothing overlapped.

    Without latency the efficiency never falls below 1 / (1 + 2 n / (B x)). compute_seconds: x. num_bytes: n.
    workers: N. bytes_per_second: B. latency_seconds: a.

    >>> round(ring_speed_up(0.3, 1e8, workers=2, bytes_per_second=1e9, latency_seconds=0.0), 9)
    1.5
    """
    communication = ring_all_reduce_seconds(num_bytes, workers, bytes_per_second, latency_seconds)
    return weak_speed_up(compute_seconds, communication, workers)


def server_speed_up(
    compute_seconds: float, num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float
) -> float:
    """`weak_speed_up` with one parameter server, nothing overlapped; never above x B / (2 n).

    compute_seconds: x. num_bytes: n. workers: N. bytes_per_second: B. latency_seconds: a.

    >>> round(server_speed_up(0.4, 1e8, workers=2, bytes_per_second=1e9, latency_seconds=0.0), 9)
    1.0
    """
    communication = parameter_server_seconds(num_bytes, workers, bytes_per_second, latency_seconds)
    return weak_speed_up(compute_seconds, communication, workers)


def speed_up(growth: str, share: float, workers: int) -> float:
    """The model S(N) = N / (1 + r g(N)) without latency.

    growth: "serial", "ring" or "server". share: r. workers: N.

    >>> speed_up("serial", 0.1, workers=9) == amdahl_speed_up(0.1, workers=9)
    True
    """
    at_least(0, share=share)
    at_least(1, workers=workers)
    return workers / (1 + share * _growth(growth)(workers))


def share_of_speed_up(growth: str, speed_up: float, workers: int) -> float:
    """The r for which a model has a known speed-up: (N / S - 1) / g(N).

    growth: "serial", "ring" or "server". speed_up: S, above 0 and at most N. workers: N, at least 2.

    >>> round(share_of_speed_up("serial", 3.0, workers=4), 6)    # 1/9 of the work is serial
    0.111111
    """
    at_least(2, workers=workers)
    if not 0 < speed_up <= workers:
        raise InputError.of("speed_up", speed_up, f"must be above 0 and at most the {workers} workers", "measure again")
    return (workers / speed_up - 1) / _growth(growth)(workers)


def _growth(growth: str) -> Callable[[int], float]:
    if growth not in GROWTHS:
        raise InputError.of("growth", growth, "is not a model", f"take one of {', '.join(GROWTHS)}")
    return GROWTHS[growth]
