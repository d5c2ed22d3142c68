"""Averages through one server: all push what they have, and when it has all, the server answers everybody at once."""

from __future__ import annotations

import numpy as np

from distsim.cluster import Cluster
from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.sharing import shared_ends


class OneServer:
    """One server on a host of its own.

    fifo: it takes one push after the other, in order of arrival. apply_seconds: its own work before it answers.
    """

    def __init__(self, cluster: Cluster, num_bytes: float, apply_seconds: float, *, eager: bool, fifo: bool) -> None:
        workers, server = range(cluster.workers), cluster.workers
        self.latency = cluster.latency_seconds
        self.num_bytes = num_bytes
        self.apply_seconds = apply_seconds
        self.eager, self.fifo = eager, fifo
        self.ups, self.capacity = np.array([cluster.up(worker) for worker in workers]), cluster.down(server)
        downs = np.array([cluster.down(worker) for worker in workers])
        self.pull_seconds = shared_ends(np.full((1, server), self.latency), downs, cluster.up(server), num_bytes)[0]

    def averages(self, work: Floats) -> Floats:
        """When pushes are ready, begin and arrive, and pulls begin and arrive; shape (5, averages, workers).

        work: seconds that each worker works before each average, shape (averages, workers). A push begins when it
        leaves, or when a fifo server turns to it.
        """
        ready, began, arrived, answered, pulled = times = np.empty((5, *work.shape))
        # Seconds count from the answers before.
        ready[:] = work
        ready[1:] += self.pull_seconds
        began[:], arrived[:] = self._pushes(ready)
        answered[:] = arrived.max(axis=1, keepdims=True) + self.apply_seconds
        pulled[:] = answered + self.pull_seconds
        times[:, 1:] += np.cumsum(answered[:-1, :1], axis=0)
        return times

    def _pushes(self, ready: Floats) -> tuple[Floats, Floats]:
        if not self.fifo:
            return ready, shared_ends(ready + self.latency, self.ups, self.capacity, self.num_bytes)
        asked = ready + self.latency if self.eager else ready
        turns = self.num_bytes / np.minimum(self.ups, self.capacity) + (0.0 if self.eager else self.latency)
        order = np.argsort(asked, axis=1, kind="stable")  # ties by rank
        began, ended, averages = np.empty_like(asked), np.zeros(len(asked)), np.arange(len(asked))
        for worker in order.T:
            began[averages, worker] = np.maximum(asked[averages, worker], ended)
            ended = began[averages, worker] + turns[worker]
        return began, began + turns
