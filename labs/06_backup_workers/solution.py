"""Lab 06: a parameter server that waits for everybody, or only for the first.

The last rank is the server; all others are workers. They talk by messages of one float64 vector each,
without tags, and by nothing else:

    push, from a worker      [version that the gradient was computed at, gradient ...]
    answer, from the server  [version of these parameters, parameters ...], or [STOP, parameters ...] at the end

A worker computes one gradient, pushes it, waits for its answer, and goes on with the parameters that came.
Your workers are also tried beside a server of ours, and your server beside workers of ours.

`dist.recv(vector)` without a source takes the message that comes next, from whomever, and returns its sender's rank.
Nobody waits needlessly. Wait in `recv` or in `wait`: a server that sleeps between looks at its messages answers late.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

STOP = -1.0


def work(parameters: torch.Tensor, gradient: Callable[[torch.Tensor, int], torch.Tensor]) -> None:
    """Works until the server says STOP: computes, pushes, and takes the answer's parameters, in place.

    All workers begin with the same `parameters`, version 0. `gradient(parameters, version)` computes, which takes time.
    """
    # write
    server = dist.get_world_size() - 1
    version, answer = 0, torch.empty(1 + len(parameters), dtype=torch.float64)
    while version != STOP:
        push = torch.cat([torch.tensor([float(version)], dtype=torch.float64), gradient(parameters, version)])
        dist.send(push, server)
        dist.recv(answer, server)
        version = int(answer[0])
        parameters.copy_(answer[1:])
    # end


def serve(parameters: torch.Tensor, updates: int, wait_for: int, learning_rate: float) -> list[list[int]]:
    """Is the server: makes so many updates of `parameters` (at least 1), in place.

    An update takes the mean of the first `wait_for` gradients of the current version, times the learning rate, off the
    parameters; then the workers whose gradients these were are answered with the new version, in the order in which
    they came. A gradient of an older version is late: it is dropped, and its worker is answered at once with the newest
    version. While an update is being made, the newest version is the one before: the parameters that a late worker gets
    hold none of the new update's gradients. With `wait_for` equal to the number of workers this is synchronous
    training; the others are backup workers.

    After the last update every worker is answered with STOP: at once those whose gradients made it, and each of the
    others when its push has come. Returns the ranks of each update's gradients, in the order in which they came.
    """
    # write
    used: list[list[int]] = []
    push = torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), []
        while len(ranks) < wait_for:
            worker = dist.recv(push)
            if int(push[0]) == version:
                total += push[1:]
                ranks.append(worker)
            else:
                answer(worker, version, parameters)
        parameters -= learning_rate * total / wait_for
        for worker in ranks:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(dist.get_world_size() - 1 - wait_for):
        answer(dist.recv(push), STOP, parameters)
    return used
    # end


# write
def answer(worker: int, version: float, parameters: torch.Tensor) -> None:
    dist.send(torch.cat([torch.tensor([float(version)], dtype=torch.float64), parameters]), worker)


# end
def step_seconds(mean: float, workers: int, wait_for: int) -> float:
    """Predicts how long an update waits for its gradients when compute times are exponential with this mean.

    That is the expected time, in seconds, of the `wait_for`-th of `workers` independent exponential times that begin
    together. Messages take no time here.
    """
    # write
    return mean * sum(1.0 / (workers - done) for done in range(wait_for))
    # end
