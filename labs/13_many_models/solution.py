"""Lab 13: a scheduler of trials, which trains many models on few workers, and finds the best one.

A *trial* is the training of one configuration: a learning rate, say, and a number of layers. Trials are numbered from
0. A *job* is a part of a trial: (trial, start, stop) continues this trial at epoch `start` and ends it at epoch `stop`.
Checkpoints lie where all workers find them, so any worker may do any job of a trial.

The last rank is the scheduler; all others are workers. They talk by messages of float64 vectors, without tags, and by
nothing else:

    order, from the scheduler   [trial, start, stop]: do this job
                                [STOP, STOP, STOP]: there is no further job
    report, from a worker       [DONE, loss] of the job that it was ordered to do
                                [LOST, nan]: this worker breaks down, and its job is not done

LOST is the last message of a worker; then its process ends, and takes no message any more. A real worker that breaks
down says nothing: a real scheduler learns of it when the connection closes, or when a regular sign of life is missing.
The network of this lab has no such signs, so here a worker tells it.

A loss of nan is a result as any other: the training has diverged. The job is done.

`dist.recv(vector)` without a source takes the next message, from any rank, and returns the rank of its sender.
No rank waits needlessly: the scheduler decides about one report before it takes the next one. Wait in `recv` or in
`wait`: a scheduler that sleeps between looks at its messages answers late. Each isend and irecv is waited for in the
end. Your workers are also tried beside a scheduler of ours, and your scheduler beside workers of ours.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
import torch.distributed as dist

STOP, DONE, LOST = -1.0, 0.0, 1.0
Job = tuple[int, int, int]  # trial, start, stop


class WorkerLostError(Exception):
    """This worker breaks down."""


def seed_of(base_seed: int, trial: int) -> int:
    """The seed of a trial: a whole number of at least 0 and less than 2**63.

    A trial always has the same seed: on every rank, in every process, whatever was asked before. Other trials have
    other seeds, and so have the trials of another base seed: no two pairs (base seed, trial) have the same seed. Base
    seeds and trials are at least 0 and less than 2**31. The function changes no state: the global generators of Python,
    numpy and torch go on as if it had not been called.

    If a rule can give two pairs the same seed by chance alone, with a probability of about 2**-63, that is good enough.
    A probability of 2**-32 is too large: among 100,000 trials, two probably have the same seed.
    """
    # write
    return np.random.SeedSequence(base_seed, spawn_key=(trial,)).generate_state(1, np.uint64).item() >> 1
    # end


def plan(expected: Sequence[float], workers: int) -> list[tuple[int, float]]:
    """Plans which worker trains each trial, and from when on: the longest trials first.

    expected: by trial, how many seconds it is expected to take, at least 0. Trials are taken one after the other, the
    longest first, and of equally long ones the one with the lowest number. Each goes to the worker that is free first,
    and if several are, to the one with the lowest rank. All are free at second 0. Returns (worker, start in seconds) by
    trial.
    """
    # write
    free = [(0.0, worker) for worker in range(workers)]
    planned = [(0, 0.0)] * len(expected)
    for trial in sorted(range(len(expected)), key=lambda trial: -expected[trial]):
        start, worker = heapq.heappop(free)
        planned[trial] = (worker, start)
        heapq.heappush(free, (start + expected[trial], worker))
    return planned
    # end


def most_seconds(seconds: Sequence[float], workers: int) -> float:
    """Predicts how long all trials take at most, in whatever order they are given to idle workers: Graham's bound.

    seconds: by trial, how long it takes, on any worker. There is at least one trial. Think of the trial that ends last:
    until it begins, every worker is busy with the other trials. The bound is one formula for all numbers of trials and
    workers. With fewer trials than workers it holds, too, although all trials may then end earlier.
    """
    # write
    longest = max(seconds)
    return (sum(seconds) - longest) / workers + longest
    # end


def work(base_seed: int, train: Callable[[int, int, int, int], float]) -> None:
    """Is a worker: does each job that the scheduler orders, and reports it, until the scheduler says STOP.

    `train(trial, seed, start, stop)` trains, which takes time, and returns the loss of validation at epoch `stop`. All
    four numbers are of type int, and the seed is that of `seed_of`. Where the worker breaks down, `train` raises
    WorkerLostError: report LOST, and return.
    """
    # write
    scheduler = dist.get_world_size() - 1
    order = torch.empty(3, dtype=torch.float64)
    while True:
        dist.recv(order, scheduler)
        trial, start, stop = (int(number) for number in order)
        if trial == STOP:
            return
        try:
            loss = train(trial, seed_of(base_seed, trial), start, stop)
        except WorkerLostError:
            dist.send(torch.tensor([LOST, math.nan], dtype=torch.float64), scheduler)
            return
        dist.send(torch.tensor([DONE, loss], dtype=torch.float64), scheduler)
    # end


def dispatch(jobs: Sequence[Job], workers: list[int], tries: int) -> list[float]:
    """Has all jobs done, and returns their losses in the order of `jobs`. It sends no STOP.

    jobs: each of another trial, in any order of trials. workers: the ranks that can take a job, in ascending order. A
    worker that is lost is removed from this list, in place. A worker of the list that does no job is *idle*. A job
    *waits* if no worker is doing it, it is not done, and it was ordered fewer than `tries` times. Whenever a job waits
    and a worker is idle, the first job of `jobs` that waits goes to the idle worker with the lowest rank.

    So the job of a lost worker goes to another one, at once if one is idle. A job that was lost `tries` times is given
    up: perhaps it is what makes workers break down. A job that is given up has the loss nan, and so has a job for which
    no worker is left. All jobs that can be done are done. `tries` is at least 1; jobs or workers may be an empty list.
    """
    # write
    losses = [math.nan] * len(jobs)
    ordered = [0] * len(jobs)
    waiting = list(range(len(jobs)))
    doing: dict[int, int] = {}  # by rank: the place of its job
    report = torch.empty(2, dtype=torch.float64)
    while True:
        for rank in workers:
            if waiting and rank not in doing:
                place = doing[rank] = waiting.pop(0)
                ordered[place] += 1
                dist.send(torch.tensor(jobs[place], dtype=torch.float64), rank)
        if not doing:
            return losses
        rank = dist.recv(report)
        place = doing.pop(rank)
        if report[0] == DONE:
            losses[place] = float(report[1])
        else:
            workers.remove(rank)
            if ordered[place] < tries:
                bisect.insort(waiting, place)
    # end


def rungs(trials: int, eta: int, least: int, most: int) -> list[tuple[int, int]]:
    """The rungs of successive halving, as pairs (number of trials, epoch to which they are trained).

    The first rung has all `trials` and ends at epoch `least`. Each next rung has 1 / `eta` of the trials of the rung
    before, rounded down, but at least one; it ends at `eta` times the epoch. There are two exceptions. A rung never
    ends after epoch `most`: it ends there instead. And a rung that has one trial always ends at `most`. The first rung
    that ends at `most` is the last one. `trials`, `least` and `most` are at least 1; `eta` is at least 2.
    """
    # write
    count, epoch, found = trials, least, []
    while not found or found[-1][1] < most:
        found.append((count, most if count == 1 else min(epoch, most)))
        count, epoch = max(count // eta, 1), epoch * eta
    return found
    # end


def paid_epochs(rungs: Sequence[tuple[int, int]]) -> int:
    """The number of epochs that all workers train for these rungs. Each trial continues from its checkpoint."""
    # write
    return sum(count * (stop - start) for (_, start), (count, stop) in pairwise([(0, 0), *rungs]))
    # end


def keep_best(losses: dict[int, float], count: int) -> list[int]:
    """The `count` trials with the smallest losses, the best one first.

    losses: by trial. Of equal losses, that of the lowest trial is better. nan is worse than everything else, even inf.
    Several nan count as equal losses. There are at least `count` trials.
    """
    # write
    diverged = {trial for trial, loss in losses.items() if math.isnan(loss)}
    numbers = sorted(losses.keys() - diverged, key=lambda trial: (losses[trial], trial))
    return [*numbers, *sorted(diverged)][:count]
    # end


def search(trials: int, eta: int, least: int, most: int, tries: int) -> tuple[int, list[dict[int, float]]]:
    """Is the scheduler: successive halving on all workers. Then each worker that is left gets STOP.

    Has the jobs of one rung after the other done, by `dispatch` with these `tries`; which rungs, `rungs` says. The jobs
    of the first rung are in the order of trials. A next rung has the best trials of the rung before: its jobs are in
    the order of `keep_best`, and continue where the rung before ended. A worker that is lost is lost for all rungs.
    Returns the best trial of the last rung, and for each rung its losses by trial.
    """
    # write
    workers = list(range(dist.get_world_size() - 1))
    trained, start, history = list(range(trials)), 0, []
    for count, stop in rungs(trials, eta, least, most):
        trained = trained[:count]
        found = dispatch([(trial, start, stop) for trial in trained], workers, tries)
        history.append(dict(zip(trained, found, strict=True)))
        trained, start = keep_best(history[-1], count), stop
    for rank in workers:
        dist.send(torch.full((3,), STOP, dtype=torch.float64), rank)
    return trained[0], history
    # end


def select(validation: Sequence[Sequence[float]], test: Callable[[int], float]) -> tuple[int, float, float]:
    """Chooses a configuration by its validation losses, and tests this one alone, once.

    validation: for each configuration, its losses of validation, one for each seed that it was trained with. These are
    one or more. The best configuration has the smallest mean loss; equal means and nan count as in `keep_best`, and a
    mean with a nan in it is nan. `test(configuration)` gives the loss on the test set. The test set has no part in the
    choice. Returns the configuration, its mean loss of validation, and its loss on the test set.
    """
    # write
    means = {number: sum(losses) / len(losses) for number, losses in enumerate(validation)}
    (chosen,) = keep_best(means, 1)
    return chosen, means[chosen], test(chosen)
    # end
