"""Seconds of collectives on equal links: N workers, n bytes each, B bytes per second per direction, latency a.

Sources: Thakur, Rabenseifner and Gropp 2005, Optimization of collective communication operations in MPICH;
Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from distsim.errors import InputError
from distsim.theory.arguments import above, at_least


def ring_all_reduce_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a ring all-reduce: 2 (N - 1) (a + n / (N B)).

    In each of 2 (N - 1) rounds every worker sends one of N chunks (Patarasuk and Yuan 2009; Thakur et al. 2005,
    without the cost of the additions).

    num_bytes: n, of one worker's vector. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> round(ring_all_reduce_seconds(100 * 2**20, workers=4, bytes_per_second=1.25e9, latency_seconds=10e-6), 8)
    0.12588912
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    return 2 * (workers - 1) * (latency_seconds + num_bytes / (workers * bytes_per_second))


def parameter_server_seconds(
    num_bytes: float,
    workers: int,
    bytes_per_second: float,
    latency_seconds: float,
    servers: int = 1,
    colocated: bool = False,
) -> float:
    """Seconds of an all-reduce over M servers, all workers ready at once: 2 (max(1, N / M) n / B + a).

    Every server sums one M-th of the gradient. N pushes share each server's down-link, and M pushes share each
    worker's up-link: the busier link is the bottleneck. The answers then take as long in the other direction.
    A server colocated with a worker needs no message from this worker: 2 ((N - 1) / M n / B + a), and 0 for N = 1. With
    M = N these are the ring's bytes.

    num_bytes: n, of one worker's vector. workers: N >= 1. bytes_per_second: B, of every NIC. latency_seconds: a.
    servers: M, on hosts of their own. colocated: the servers are on workers 0 to M - 1, and M <= N.

    >>> round(parameter_server_seconds(100 * 2**20, workers=4, bytes_per_second=1.25e9, latency_seconds=10e-6), 8)
    0.67110864
    >>> parameter_server_seconds(1e9, 4, bytes_per_second=1e9, latency_seconds=0.0, servers=4, colocated=True)
    1.5
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    at_least(1, servers=servers)
    if not colocated:
        return 2 * (max(1, workers / servers) * num_bytes / bytes_per_second + latency_seconds)
    if servers > workers:
        raise InputError.of("servers", servers, f"must be at most the {workers} workers if colocated", "use fewer")
    if workers == 1:
        return 0.0
    return 2 * ((workers - 1) / servers * num_bytes / bytes_per_second + latency_seconds)


def tree_all_reduce_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of an all-reduce on a binary heap tree, unpipelined: up(N) + down(N); 2 d (2 t + a) if it is full.

    Rank i's children are 2 i + 1 and 2 i + 2; t = n / B; d = floor(log2 N) levels below the root, of which the last
    may be partly empty. Two children share their parent's link, so a level takes 2 t; with one child it takes t:

        up(1) = 0,  up(2) = t + a,  up(N) = a + max(up of the later subtree + t, up of the earlier one + 2 t)
        down(N) = d (2 t + a), less t if N = 2^d: the last level then has one rank

    Derived here, rank by rank, with links shared as in the simulator's fluid model.

    num_bytes: n, of one worker's vector. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> tree_all_reduce_seconds(1e9, workers=7, bytes_per_second=1e9, latency_seconds=0.001)    # 2 x 2 (2 s + 1 ms)
    8.004
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    transfer = num_bytes / bytes_per_second
    depth = workers.bit_length() - 1
    down = depth * (2 * transfer + latency_seconds) - (transfer if 1 < workers == 1 << depth else 0.0)
    return _up_the_tree(workers, transfer, latency_seconds) + down


def _up_the_tree(ranks: int, transfer: float, latency: float) -> float:
    """Seconds until the root of a heap of `ranks` ranks holds the sum."""
    depth = ranks.bit_length() - 1
    if ranks == (2 << depth) - 1:
        return depth * (2 * transfer + latency)
    last_level = ranks - ((1 << depth) - 1)
    left = (1 << (depth - 1)) - 1 + min(last_level, 1 << (depth - 1))
    right = ranks - 1 - left
    if not right:
        return transfer + latency
    earlier, later = sorted(_up_the_tree(subtree, transfer, latency) for subtree in (left, right))
    return latency + max(later + transfer, earlier + 2 * transfer)


def halving_doubling_all_reduce_seconds(
    num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float
) -> float:
    """Seconds of recursive halving and doubling: 2 lg q a + 2 (q - 1) / q n / B, q the largest power of two <= N.

    If N > q, N - q ranks first send their whole gradient to a neighbour and receive the sum at the end: 2 (a + n / B)
    more. With rendezvous sends. Source: Rabenseifner's algorithm in Thakur et al. 2005.

    num_bytes: n, of one worker's vector. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> halving_doubling_all_reduce_seconds(1e9, workers=4, bytes_per_second=1e9, latency_seconds=0.001)
    1.504
    >>> halving_doubling_all_reduce_seconds(1e9, workers=6, bytes_per_second=1e9, latency_seconds=0.001)
    3.506
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    rounds = workers.bit_length() - 1
    core, transfer = 1 << rounds, num_bytes / bytes_per_second
    fold = 2 * (latency_seconds + transfer) if workers > core else 0.0
    return 2 * rounds * latency_seconds + 2 * (core - 1) / core * transfer + fold


def hierarchical_all_reduce_seconds(
    num_bytes: float,
    workers: int,
    bytes_per_second: float,
    latency_seconds: float,
    per_node: int,
    node_bytes_per_second: float,
    node_latency_seconds: float,
    nic_per: Literal["node", "worker"] = "worker",
) -> float:
    """Seconds of an all-reduce in two tiers: 2 (g - 1) (a' + n / (g B')) + 2 (m - 1) (a + k n / (g m B)).

    Rings of the g workers inside each of m nodes use the fast tier and leave each worker one g-th of the node's sum. g
    rings between the nodes add these shares up, and the inner rings spread the result. k = 1 if every worker has its
    own NIC; k = g if a node's workers, and so g rings, share one NIC. Derived from the schedule, round by round.

    num_bytes: n, of one worker's vector. workers: N = g m. bytes_per_second, latency_seconds: B, a, between nodes.
    per_node: g. node_bytes_per_second, node_latency_seconds: B', a', of the fast tier. nic_per: "worker" or "node".

    >>> round(hierarchical_all_reduce_seconds(1e9, 8, 1e9, 0.0, per_node=4, node_bytes_per_second=1e10,
    ...     node_latency_seconds=0.0), 9)    # 6 x 1/4 x 0.1 s inside, 2 x 1/8 x 1 s between
    0.4
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    at_least(1, per_node=per_node)
    above(0, node_bytes_per_second=node_bytes_per_second)
    at_least(0, node_latency_seconds=node_latency_seconds)
    if workers % per_node:
        raise InputError.of("per_node", per_node, f"must divide the {workers} workers", "fill every node with workers")
    if nic_per not in ("node", "worker"):
        raise InputError.of("nic_per", nic_per, 'must be "node" or "worker"', "take one of them")
    nodes = workers // per_node
    inside = node_latency_seconds + num_bytes / (per_node * node_bytes_per_second)
    sharing = per_node if nic_per == "node" else 1
    between = latency_seconds + sharing * num_bytes / (workers * bytes_per_second)
    return 2 * (per_node - 1) * inside + 2 * (nodes - 1) * between


def broadcast_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a broadcast by a binomial tree: ceil(lg N) (a + n / B) (Thakur et al. 2005).

    num_bytes: n, of the root's vector. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> round(broadcast_seconds(1e9, workers=6, bytes_per_second=1e9, latency_seconds=0.001), 9)
    3.003
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    return (workers - 1).bit_length() * (latency_seconds + num_bytes / bytes_per_second)


def reduce_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a reduce by a binomial tree, with rendezvous sends: ceil(lg N) (a + n / B), a broadcast backwards.

    num_bytes: n, of one worker's vector. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> round(reduce_seconds(1e9, workers=8, bytes_per_second=1e9, latency_seconds=0.001), 9)
    3.003
    """
    return broadcast_seconds(num_bytes, workers, bytes_per_second, latency_seconds)


def scatter_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a scatter, all pieces sent at once: a + (N - 1) / N n / B on the root's up-link; 0 for N = 1.

    num_bytes: n, of all N pieces together. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> scatter_seconds(1e9, workers=4, bytes_per_second=1e9, latency_seconds=0.001)
    0.751
    """
    _check(num_bytes, workers, bytes_per_second, latency_seconds)
    if workers == 1:
        return 0.0
    return latency_seconds + (workers - 1) / workers * num_bytes / bytes_per_second


def gather_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a gather, all pieces sent at once: a + (N - 1) / N n / B on the root's down-link; 0 for N = 1.

    num_bytes: n, of all N pieces together. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> gather_seconds(1e9, workers=4, bytes_per_second=1e9, latency_seconds=0.001)
    0.751
    """
    return scatter_seconds(num_bytes, workers, bytes_per_second, latency_seconds)


def all_gather_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of an all-gather around a ring: (N - 1) (a + n / (N B)) (Thakur et al. 2005), half an all-reduce.

    num_bytes: n, of all N pieces together. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> all_gather_seconds(1e9, workers=4, bytes_per_second=1e9, latency_seconds=0.001)
    0.753
    """
    return ring_all_reduce_seconds(num_bytes, workers, bytes_per_second, latency_seconds) / 2


def reduce_scatter_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of a reduce-scatter around a ring: (N - 1) (a + n / (N B)), the other half of an all-reduce.

    num_bytes: n, of one worker's vector. workers: N >= 1. bytes_per_second: B. latency_seconds: a.

    >>> reduce_scatter_seconds(1e9, workers=4, bytes_per_second=1e9, latency_seconds=0.001)
    0.753
    """
    return all_gather_seconds(num_bytes, workers, bytes_per_second, latency_seconds)


def all_to_all_seconds(num_bytes: float, workers: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Seconds of an all-to-all in N - 1 rounds of one exchange each: (N - 1) (a + n / (N B)).

    num_bytes: n, of one worker's vector; the schedule's data are the vectors of all workers, N n. workers: N >= 1.
    bytes_per_second: B. latency_seconds: a.

    >>> all_to_all_seconds(1e9, workers=4, bytes_per_second=1e9, latency_seconds=0.001)
    0.753
    """
    return all_gather_seconds(num_bytes, workers, bytes_per_second, latency_seconds)


def all_reduce_bytes_per_worker(num_bytes: float, workers: int) -> float:
    """The least bytes that each worker sends in an all-reduce among peers: 2 (N - 1) / N n.

    Source: Patarasuk and Yuan 2009. The ring reaches this lower bound.

    >>> all_reduce_bytes_per_worker(4e6, workers=4)
    6000000.0
    """
    _check(num_bytes, workers)
    return 2 * (workers - 1) / workers * num_bytes


def server_link_bytes(num_bytes: float, workers: int) -> float:
    """The bytes of one step in each direction of a single parameter server's link: N n.

    >>> server_link_bytes(4e6, workers=4)
    16000000.0
    """
    _check(num_bytes, workers)
    return workers * num_bytes


# By kind of collective. All forms take num_bytes, workers, bytes_per_second and latency_seconds. Forms with servers
# also take servers and colocated; forms with nodes also per_node, node_bytes_per_second, node_latency_seconds, nic_per.
CLOSED_FORMS: dict[str, Callable[..., float]] = {
    "ring": ring_all_reduce_seconds,
    "tree": tree_all_reduce_seconds,
    "halving_doubling": halving_doubling_all_reduce_seconds,
    "parameter_server": parameter_server_seconds,
    "hierarchical": hierarchical_all_reduce_seconds,
    "broadcast": broadcast_seconds,
    "reduce": reduce_seconds,
    "scatter": scatter_seconds,
    "gather": gather_seconds,
    "all_gather": all_gather_seconds,
    "reduce_scatter": reduce_scatter_seconds,
    "all_to_all": all_to_all_seconds,
}


def _check(num_bytes: float, workers: int, bytes_per_second: float = 1.0, latency_seconds: float = 0.0) -> None:
    if not num_bytes >= 0:
        raise InputError.of("num_bytes", num_bytes, "must be at least 0", "give the bytes of one worker's vector")
    if not workers >= 1:
        raise InputError.of("workers", workers, "must be at least 1", "give the number of workers")
    if not bytes_per_second > 0:
        raise InputError.of("bytes_per_second", bytes_per_second, "must be above 0", "give the speed of one link")
    if not latency_seconds >= 0:
        raise InputError.of("latency_seconds", latency_seconds, "must be at least 0", "give the latency of one message")
