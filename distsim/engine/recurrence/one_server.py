"""An average through one server: all push what they have, and when it has all, the server answers everybody at once."""

from __future__ import annotations

import numpy as np

from distsim.cluster import Cluster
from distsim.engine.recurrence.all_reduce import AllReduce
from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.sharing import shared_ends


class OneServer(AllReduce):
    """The all-reduce `collectives.parameter_server` with one server on a host of its own: all pushes, then all pulls.

    fifo: the server takes one push after the other, in order of arrival. apply_seconds: its own work, before it answers.
    """

    joint = True

    def __init__(
        self, cluster: Cluster, num_bytes: float, *, eager: bool, fifo: bool, apply_seconds: float = 0.0
    ) -> None:
        server = cluster.workers
        workers, servers = np.arange(server, dtype=np.int32), np.full(server, server, dtype=np.int32)
        self.latency = cluster.latency_seconds
        self.num_bytes = num_bytes
        self.eager, self.fifo, self.apply_seconds = eager, fifo, apply_seconds
        self.ups = np.array([cluster.up(worker) for worker in range(server)])
        self.capacity = cluster.down(server)
        downs = np.array([cluster.down(worker) for worker in range(server)])
        joined = np.full((1, server), self.latency)
        self.pull_seconds = shared_ends(joined, downs, np.array([cluster.up(server)]), num_bytes)[0]
        self.source, self.target = np.concatenate([workers, servers]), np.concatenate([servers, workers])
        self.chunk = np.zeros(len(self.source), dtype=np.int32)
        self.bytes = np.full(len(self.source), num_bytes)

    def ends(self, arrivals: Floats) -> Floats:
        calls = arrivals.reshape(-1, arrivals.shape[-1])
        return np.reshape(self._answered(self._pushes(calls)[1]) + self.pull_seconds, arrivals.shape)

    def transfers(self, arrivals: Floats, times: Floats) -> None:
        starts, ends = times
        workers = arrivals.shape[1]
        starts[:, :workers], ends[:, :workers] = began, arrived = self._pushes(arrivals)
        starts[:, workers:] = self._answered(arrived)
        ends[:, workers:] = starts[:, workers:] + self.pull_seconds

    def _answered(self, arrived: Floats) -> Floats:
        return np.asarray(arrived.max(axis=1, keepdims=True) + self.apply_seconds)

    def _pushes(self, arrivals: Floats) -> tuple[Floats, Floats]:
        """When each push begins, for a fifo server when it turns to it, and when it is there; shape (calls, workers)."""
        if self.fifo:
            return self._in_turn(arrivals)
        capacity = np.full(len(arrivals), self.capacity)
        return arrivals, shared_ends(arrivals + self.latency, self.ups, capacity, self.num_bytes)

    def _in_turn(self, arrivals: Floats) -> tuple[Floats, Floats]:
        asked = arrivals + self.latency if self.eager else arrivals
        turns = self.num_bytes / np.minimum(self.ups, self.capacity) + (0.0 if self.eager else self.latency)
        order = np.argsort(asked, axis=1, kind="stable")  # ties by rank
        began, ended = np.empty_like(asked), np.full(len(asked), -np.inf)
        calls = np.arange(len(asked))
        for worker in order.T:
            began[calls, worker] = np.maximum(asked[calls, worker], ended)
            ended = began[calls, worker] + turns[worker]
        return began, began + turns
