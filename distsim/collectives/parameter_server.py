"""All-reduce through a parameter server: all push to it, and it sends the sum to all."""

from __future__ import annotations

from distsim.collectives.schedule import Schedule, Transfer


def parameter_server(workers: int) -> Schedule:
    """Two rounds over one server, the rank after the workers; 2 N messages of the whole gradient.

    >>> parameter_server(3).check()
    >>> parameter_server(3).bytes_per_link(1e6)[1]
    array([1000000., 1000000., 1000000., 3000000.])
    """
    server = workers
    push = tuple(Transfer(worker, server, 0, reduce=True) for worker in range(workers))
    pull = tuple(Transfer(server, worker, 0, reduce=False) for worker in range(workers))
    return Schedule("parameter_server", workers, 1, (push, pull), servers=1, gate="data")
