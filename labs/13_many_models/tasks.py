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
    raise NotImplementedError("write seed_of: The seed of a trial: a whole number of at least 0 and less than 2**63.")


def plan(expected: Sequence[float], workers: int) -> list[tuple[int, float]]:
    """Plans which worker trains each trial, and from when on: the longest trials first.

    expected: by trial, how many seconds it is expected to take, at least 0. Trials are taken one after the other, the
    longest first, and of equally long ones the one with the lowest number. Each goes to the worker that is free first,
    and if several are, to the one with the lowest rank. All are free at second 0. Returns (worker, start in seconds) by
    trial.
    """
    raise NotImplementedError(
        "write plan: Plans which worker trains each trial, and from when on: the longest trials first."
    )


def most_seconds(seconds: Sequence[float], workers: int) -> float:
    """Predicts how long all trials take at most, in whatever order they are given to idle workers: Graham's bound.

    seconds: by trial, how long it takes, on any worker. There is at least one trial. Think of the trial that ends last:
    until it begins, every worker is busy with the other trials. The bound is one formula for all numbers of trials and
    workers. With fewer trials than workers it holds, too, although all trials may then end earlier.
    """
    raise NotImplementedError(
        "write most_seconds: Predicts how long all trials take at most, in whatever order they are given to idle "
        "workers: Graham's bound."
    )


def work(base_seed: int, train: Callable[[int, int, int, int], float]) -> None:
    """Is a worker: does each job that the scheduler orders, and reports it, until the scheduler says STOP.

    `train(trial, seed, start, stop)` trains, which takes time, and returns the loss of validation at epoch `stop`. All
    four numbers are of type int, and the seed is that of `seed_of`. Where the worker breaks down, `train` raises
    WorkerLostError: report LOST, and return.
    """
    raise NotImplementedError(
        "write work: Is a worker: does each job that the scheduler orders, and reports it, until the scheduler says "
        "STOP."
    )


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
    raise NotImplementedError("write dispatch: Has all jobs done, and returns their losses in the order of `jobs`.")


def rungs(trials: int, eta: int, least: int, most: int) -> list[tuple[int, int]]:
    """The rungs of successive halving, as pairs (number of trials, epoch to which they are trained).

    The first rung has all `trials` and ends at epoch `least`. Each next rung has 1 / `eta` of the trials of the rung
    before, rounded down, but at least one; it ends at `eta` times the epoch. There are two exceptions. A rung never
    ends after epoch `most`: it ends there instead. And a rung that has one trial always ends at `most`. The first rung
    that ends at `most` is the last one. `trials`, `least` and `most` are at least 1; `eta` is at least 2.
    """
    raise NotImplementedError(
        "write rungs: The rungs of successive halving, as pairs (number of trials, epoch to which they are trained)."
    )


def paid_epochs(rungs: Sequence[tuple[int, int]]) -> int:
    """The number of epochs that all workers train for these rungs. Each trial continues from its checkpoint."""
    raise NotImplementedError("write paid_epochs: The number of epochs that all workers train for these rungs.")


def keep_best(losses: dict[int, float], count: int) -> list[int]:
    """The `count` trials with the smallest losses, the best one first.

    losses: by trial. Of equal losses, that of the lowest trial is better. nan is worse than everything else, even inf.
    Several nan count as equal losses. There are at least `count` trials.
    """
    raise NotImplementedError("write keep_best: The `count` trials with the smallest losses, the best one first.")


def search(trials: int, eta: int, least: int, most: int, tries: int) -> tuple[int, list[dict[int, float]]]:
    """Is the scheduler: successive halving on all workers. Then each worker that is left gets STOP.

    Has the jobs of one rung after the other done, by `dispatch` with these `tries`; which rungs, `rungs` says. The jobs
    of the first rung are in the order of trials. A next rung has the best trials of the rung before: its jobs are in
    the order of `keep_best`, and continue where the rung before ended. A worker that is lost is lost for all rungs.
    Returns the best trial of the last rung, and for each rung its losses by trial.
    """
    raise NotImplementedError("write search: Is the scheduler: successive halving on all workers.")


def select(validation: Sequence[Sequence[float]], test: Callable[[int], float]) -> tuple[int, float, float]:
    """Chooses a configuration by its validation losses, and tests this one alone, once.

    validation: for each configuration, its losses of validation, one for each seed that it was trained with. These are
    one or more. The best configuration has the smallest mean loss; equal means and nan count as in `keep_best`, and a
    mean with a nan in it is nan. `test(configuration)` gives the loss on the test set. The test set has no part in the
    choice. Returns the configuration, its mean loss of validation, and its loss on the test set.
    """
    raise NotImplementedError(
        "write select: Chooses a configuration by its validation losses, and tests this one alone, once."
    )
