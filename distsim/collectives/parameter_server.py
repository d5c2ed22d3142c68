"""All-reduce through parameter servers: workers push their gradients, and servers send the sums to all workers."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule
from distsim.collectives.transfer import Transfer
from distsim.errors import InputError


def parameter_server(workers: int, servers: int = 1, *, colocated: bool = False) -> Schedule:
    """Each of M servers sums one M-th of the gradient; 2 N M messages, those that stay on a host left out.

    servers are the ranks after the workers, or, colocated, live on ranks 0 to servers - 1.

    >>> parameter_server(3).check()
    >>> parameter_server(3).bytes_per_link(1e6)[1]
    array([1000000., 1000000., 1000000., 3000000.])
    >>> parameter_server(4, servers=4, colocated=True).bytes_per_link(1e6)[1]
    array([1500000., 1500000., 1500000., 1500000.])
    """
    if colocated and servers > workers:
        raise InputError.of(
            "servers", servers, f"must be at most the {workers} workers if colocated", "use fewer servers"
        )
    homes = range(servers) if colocated else range(workers, workers + servers)
    pairs = [(worker, home, share) for share, home in enumerate(homes) for worker in range(workers) if worker != home]
    push = tuple(Transfer(worker, home, share, reduce=True) for worker, home, share in pairs)
    pull = tuple(Transfer(home, worker, share, reduce=False) for worker, home, share in pairs)
    rounds = (push, pull) if pairs else ()
    return Schedule("parameter_server", workers, servers, rounds, servers=0 if colocated else servers, gate="data")
