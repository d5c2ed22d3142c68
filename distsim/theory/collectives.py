"""What collectives cost on equal links: p workers, n bytes each, B bytes per second per direction, latency a seconds.

Sources: Thakur, Rabenseifner and Gropp 2005, Optimization of collective communication operations in MPICH;
Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations; for the
factors of the bus bandwidth, nccl-tests (doc/PERFORMANCE.md, and the GetBw functions in src/ for gather, scatter
and send).
"""

from __future__ import annotations

from collections.abc import Callable

from distsim.errors import InputError


def ring_all_reduce_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a ring all-reduce: 2 (p - 1) (a + n / (p B)).

    2 (p - 1) rounds in which every worker sends one of p chunks (Patarasuk and Yuan 2009; Thakur et al. 2005,
    without the cost of the additions).

    num_bytes: n, of one worker's vector. workers: p >= 1. bytes_per_second: B. latency_seconds: a.

    >>> round(ring_all_reduce_seconds(100 * 2**20, workers=4, bytes_per_second=1.25e9, latency_seconds=10e-6), 8)
    0.12588912
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    return 2 * (workers - 1) * (latency_seconds + num_bytes / (workers * bytes_per_second))


def parameter_server_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of an all-reduce over one server, all workers ready at once: 2 (p n / B + a).

    p pushes share the server's down-link; when all are in, p answers share its up-link. The server is a
    host of its own, and its NIC is like the workers'.

    num_bytes: n, of one worker's vector. workers: p >= 1. bytes_per_second: B. latency_seconds: a.

    >>> round(parameter_server_seconds(100 * 2**20, workers=4, bytes_per_second=1.25e9, latency_seconds=10e-6), 8)
    0.67110864
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    return 2 * (workers * num_bytes / bytes_per_second + latency_seconds)


def all_reduce_bytes_per_worker(num_bytes: float, workers: int) -> float:
    """The bytes that each worker must send at least in any all-reduce among peers: 2 (p - 1) / p n.

    The tight bound of Patarasuk and Yuan 2009; the ring sends exactly as much.

    >>> all_reduce_bytes_per_worker(4e6, workers=4)
    6000000.0
    """
    _check(num_bytes, workers)
    return 2 * (workers - 1) / workers * num_bytes


def server_link_bytes(num_bytes: float, workers: int) -> float:
    """The bytes of one step through each direction of a single parameter server's link: p n.

    >>> server_link_bytes(4e6, workers=4)
    16000000.0
    """
    _check(num_bytes, workers)
    return workers * num_bytes


# The least bytes that the busiest link direction carries, as a multiple of num_bytes, for p ranks.
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda p: 2 * (p - 1) / p,
    "all_gather": lambda p: (p - 1) / p,
    "reduce_scatter": lambda p: (p - 1) / p,
    "all_to_all": lambda p: (p - 1) / p,
    "gather": lambda p: (p - 1) / p,
    "scatter": lambda p: (p - 1) / p,
    "broadcast": lambda p: 1.0,  # noqa: ARG005 - the root sends everything, whatever p is
    "reduce": lambda p: 1.0,  # noqa: ARG005 - the root receives everything
    "send": lambda p: 1.0,  # noqa: ARG005 - one link
}


def bus_bandwidth_bytes_per_second(collective: str, num_bytes: float, workers: int, seconds: float) -> float:
    """The speed a link must at least have had: factor(p) n / seconds, comparable across collectives and p.

    No correct measurement exceeds the bandwidth of the link. Source of the factors: nccl-tests, doc/PERFORMANCE.md.

    collective: a key of `BUS_FACTORS`. num_bytes: n, of the whole vector: for all_gather, gather, reduce_scatter and
    scatter that of all p parts together. seconds: how long the collective took.

    >>> bus_bandwidth_bytes_per_second("all_reduce", 1e9, workers=4, seconds=1.5)
    1000000000.0
    """
    if collective not in BUS_FACTORS:
        raise InputError.of("collective", collective, "has no bus factor", f"take one of {', '.join(BUS_FACTORS)}")
    _check(num_bytes, workers)
    if not seconds > 0:
        raise InputError.of("seconds", seconds, "must be above 0", "give the measured duration")
    return BUS_FACTORS[collective](workers) * num_bytes / seconds


def _check(num_bytes: float, workers: int, bytes_per_second: float = 1.0, latency_seconds: float = 0.0) -> None:
    if not num_bytes >= 0:
        raise InputError.of("num_bytes", num_bytes, "must be at least 0", "give the bytes of one worker's vector")
    if not workers >= 1:
        raise InputError.of("workers", workers, "must be at least 1", "give the number of workers")
    if not bytes_per_second > 0:
        raise InputError.of("bytes_per_second", bytes_per_second, "must be above 0", "give the speed of one link")
    if not latency_seconds >= 0:
        raise InputError.of("latency_seconds", latency_seconds, "must be at least 0", "give the latency of one message")
