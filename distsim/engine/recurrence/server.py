"""Servers that wait for every worker, or one server that cancels late steps, as arrays over all steps of a run.

The times of a step count from the answers of the step before. A fifo server receives one gradient after the other. The
gradients for a concurrent server share its link; `sharing` computes their times for all steps at once.
"""

from __future__ import annotations

import math

import numpy as np

from distsim.arrays import Floats
from distsim.engine.recurrence.rows import step_seconds
from distsim.engine.recurrence.sharing import shared_ends
from distsim.engine.steps import Steps, steps_trace
from distsim.policies import Backup
from distsim.scenario import Scenario
from distsim.trace import Trace


class OneServer:
    """A server on its own host, and the NICs of its workers.

    Several servers behave alike: each has an equal part of the bytes and of every worker's NIC.
    pull_seconds: by worker, counted from the moment when the answers leave.
    """

    def __init__(self, scenario: Scenario) -> None:
        cluster, workers, server = scenario.cluster, range(scenario.cluster.workers), scenario.cluster.workers
        self.latency = cluster.latency_seconds
        servers = len(scenario.servers)
        self.num_bytes = scenario.gradient_bytes / servers
        self.eager = scenario.communication.sends == "eager"
        self.fifo = scenario.receive == "fifo"
        self.ups, self.capacity = np.array([cluster.up(worker) for worker in workers]) / servers, cluster.down(server)
        downs = np.array([cluster.down(worker) for worker in workers]) / servers
        leaving = np.full((1, cluster.workers), self.latency)
        self.pull_seconds = shared_ends(leaving, downs, cluster.up(server), self.num_bytes)[0]

    def pushes(self, ready: Floats) -> tuple[Floats, Floats]:
        """The times when pushes begin and arrive if gradients are ready at these times, shape (steps, workers).

        A push begins when it leaves the worker, or when a fifo server starts to receive it.
        """
        if not self.fifo:
            return ready, shared_ends(ready + self.latency, self.ups, self.capacity, self.num_bytes)
        asked = ready + self.latency if self.eager else ready
        transfer_seconds = self.num_bytes / np.minimum(self.ups, self.capacity) + (0.0 if self.eager else self.latency)
        order = np.argsort(asked, axis=1, kind="stable")  # ties by rank
        began, ended, steps = np.empty_like(asked), np.zeros(len(asked)), np.arange(len(asked))
        for worker in order.T:
            began[steps, worker] = np.maximum(asked[steps, worker], ended)
            ended = began[steps, worker] + transfer_seconds[worker]
        return began, began + transfer_seconds

    def exchanges(self, work: Floats, apply_seconds: float) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Times when workers are ready, pushes begin and arrive, answers leave and arrive; in the shape of `work`.

        work: seconds that each worker works before each exchange, shape (exchanges, workers). The server waits for all.
        """
        ready = work.copy()
        ready[1:] += self.pull_seconds  # seconds count from the previous answers
        began, arrived = self.pushes(ready)
        answered = np.cumsum(arrived.max(axis=1) + apply_seconds)[:, None]
        zero = np.concatenate([[[0.0]], answered[:-1]])
        leaving = np.broadcast_to(answered, work.shape)
        return ready + zero, began + zero, arrived + zero, leaving, answered + self.pull_seconds


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario`, which waits for all or cancels, that has no recurrence here, or None."""
    cluster = scenario.cluster
    if cluster.nodes is not None:
        return "cluster.nodes"
    if scenario.communication.colocated:
        return "communication.colocated = true"
    if len(scenario.servers) > 1:
        return None  # `sharing` serves different NICs, too
    workers = range(cluster.workers)
    if scenario.receive == "concurrent" and len({cluster.up(worker) for worker in workers}) > 1:
        return 'cluster.nic with different up-links and receive = "concurrent"'
    if isinstance(scenario.policy, Backup) and len({cluster.down(worker) for worker in workers}) > 1:
        return "cluster.nic with different down-links and cancel = true"
    return None


def run(scenario: Scenario, apply_seconds: float) -> Trace:
    """Simulates `scenario`. apply_seconds: the server's own work for each update."""
    steps, workers = scenario.steps, scenario.cluster.workers
    needed = workers - (scenario.policy.backups if isinstance(scenario.policy, Backup) else 0)
    server = OneServer(scenario)
    # Times of a step count from the answers before the step.
    ready = step_seconds(scenario)
    ready[1:] += server.pull_seconds
    began, arrived = server.pushes(ready)
    update = np.partition(arrived, needed - 1, axis=1)[:, needed - 1]
    answers = np.cumsum(update + apply_seconds)
    zero = np.concatenate([[0.0], answers[:-1]])[:, None]
    started = np.where(np.arange(steps)[:, None] > 0, server.pull_seconds, 0.0) + zero
    order = np.argsort(np.argsort(arrived, axis=1, kind="stable"), axis=1)  # ties by rank
    applied = order < needed
    # Further gradients may arrive before the server answers and cancels.
    received = applied if server.fifo else applied | (arrived <= (update + apply_seconds)[:, None])
    step = np.repeat(np.arange(steps), workers)
    ready += zero
    found = Steps(
        worker=np.tile(np.arange(workers, dtype=np.int32), steps),
        step=step,
        read_version=step,
        start=started.ravel(),
        ready=ready.ravel(),
        began=(began + zero).ravel() if server.fifo else ready.ravel(),
        arrived=np.where(received, arrived + zero, math.nan).ravel(),
        outcome=np.where(applied.ravel(), step + 1.0, math.nan),
        answered=np.repeat(answers, workers),
        pulled=(answers[:, None] + server.pull_seconds).ravel(),
        cut=np.where(applied, math.nan, answers[:, None]).ravel(),
        updates=answers,
    )
    return steps_trace(scenario, "recurrence", [found] * len(scenario.servers), apply_seconds)
