"""What runs in the ranks: the student's scheduler and workers, and the losses of trials, which only workers know."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from distsim.testbed import rank

Arguments = dict[str, Any]
STOP, DONE, LOST = -1.0, 0.0, 1.0  # the student's file has them, too, but may change them
UNKNOWN = 1e6  # the loss of a job that nobody should order


def ask(tasks: ModuleType, *, name: str, cases: list[list[Any]]) -> Arguments:
    """What one of the student's functions says in each case."""
    function = getattr(tasks, name)
    return {"found": [_plain(function(*case)) for case in cases]}


def _plain(value: Any) -> Any:
    """Lists for tuples, and Python's numbers for those of numpy and torch."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, (np.generic, torch.Tensor)) else value


def seeds(tasks: ModuleType, *, pairs: list[list[int]], before: int) -> Arguments:
    """The seed of each pair, and what the global generators give after so many of these questions."""
    for start in (random.seed, np.random.seed, torch.manual_seed):
        start(1)
    for pair in pairs[:before]:
        tasks.seed_of(*pair)
    drawn = [random.random(), float(np.random.random()), float(torch.rand(()))]  # noqa: NPY002 - the global one
    found = [tasks.seed_of(*pair) for pair in pairs]
    return {"found": [str(one) if type(one) is int else repr(one) for one in found], "drawn": drawn}


def kept(tasks: ModuleType, *, cases: list[Any]) -> Arguments:
    """What keep_best keeps. Each case has the trials, their losses, and how many to keep."""
    return {"found": [tasks.keep_best(dict(zip(trials, losses, strict=True)), n) for trials, losses, n in cases]}


def select(tasks: ModuleType, *, cases: list[Any]) -> Arguments:
    """What select chooses in each case, and for which configurations it has asked the test set."""
    found, asked = [], []
    for validation, tests in cases:
        asked.append([])

        def test(configuration: int, tests: Any = tests, asked: list[int] = asked[-1]) -> float:
            asked.append(int(configuration))
            return float(tests[configuration])

        chosen, mean, loss = tasks.select(validation, test)
        found.append([int(chosen), float(mean), float(loss)])
    return {"found": found, "asked": asked}


def train(tasks: ModuleType, *, cases: list[Arguments], pairs: Sequence[Sequence[int]] = ()) -> Arguments:
    """Takes part in one batch of jobs after the other, as the student's scheduler or worker, or by a script.

    pairs: base seeds and trials, of which the scheduler's rank tells the seeds.
    """
    parts = [_part(tasks, number, **case) for number, case in enumerate(cases)]
    return {"cases": parts, "seeds": [str(tasks.seed_of(*pair)) for pair in pairs]}


def _part(
    tasks: ModuleType, number: int, *, begin: float, workers: int, dispatch: Arguments | None = None,
    search: Arguments | None = None, lines: Sequence[Sequence[Any]] = (), work: Arguments | None = None,
) -> Arguments:  # fmt: skip
    """lines: a script in place of the student's scheduler."""
    rank.busy(max(begin - rank.now(), 0.0), "pause")
    if dispatch is not None:
        living = list(range(workers))
        jobs = [tuple(job) for job in dispatch["jobs"]]
        losses = tasks.dispatch(jobs, living, dispatch["tries"])
        for worker in living:
            dist.send(torch.full((3,), STOP, dtype=torch.float64), worker)
        return {"losses": [float(loss) for loss in losses], "living": [int(worker) for worker in living]}
    if search is not None:
        best, history = tasks.search(**search)
        return {"best": int(best), "history": [[[int(one), float(rung[one])] for one in rung] for rung in history]}
    if work is not None:
        _work(tasks, number, **work)
    for kind, worker, content in lines:
        if kind == "order":
            dist.send(content, worker)
        else:
            report = torch.zeros(2, dtype=torch.float64)
            dist.recv(report, worker)
            rank.note(f"report {number} {worker}", report.numpy().copy())
    return {}


def _work(
    tasks: ModuleType, number: int, *, base_seed: int, table: list[list[float]], ends: list[float], breaks: bool,
    later: float, script: bool,
) -> None:  # fmt: skip
    """table: [trial, stop, loss] of each job. ends: when its first jobs end, with the last of which it may break down.

    later: the seconds of all jobs after these. script: in place of the student's worker.
    """
    losses = {(trial, stop): loss for trial, stop, loss in table}
    begun = 0

    def trained(trial: int, seed: int, start: int, stop: int) -> float:
        nonlocal begun
        begun += 1
        kinds = ["int" if type(one) is int else type(one).__name__ for one in (trial, seed, start, stop)]
        rank.note("job", [str(seed), *sorted({*kinds} - {"int"})])
        seconds = ends[begun - 1] - rank.now() if begun <= len(ends) else later
        rank.busy(max(seconds, 0.0), f"{number} {int(trial)} {int(start)} {int(stop)}")
        if breaks and begun == len(ends):
            raise (_BreaksError if script else tasks.WorkerLostError)("this worker breaks down")
        return losses.get((trial, stop), UNKNOWN)

    if not script:
        tasks.work(base_seed, trained)
        return
    order = torch.zeros(3, dtype=torch.float64)
    while True:
        dist.recv(order, dist.get_world_size() - 1)
        if order[0] == STOP:
            return
        trial, start, stop = (int(one) for one in order)
        try:
            report = [DONE, trained(trial, 0, start, stop)]
        except _BreaksError:
            report = [LOST, float("nan")]
        dist.send(torch.tensor(report, dtype=torch.float64), dist.get_world_size() - 1)
        if report[0] == LOST:
            return


class _BreaksError(Exception):
    """A worker of the script breaks down."""


def real(
    tasks: ModuleType, paces: Sequence[float] = (1.0, 1.0, 1.0, 3.0), equal: Sequence[float] = (0.05,) * 24,
    unequal: Sequence[float] = (*(0.05, 0.07) * 6, 0.25), unwritten: Sequence[str] = (),
) -> Arguments:  # fmt: skip
    """A run for real, in which a trial is a sleep. Tells the scheduler's seconds and losses of each part.

    paces: by worker, how much longer its trials take in the first part; a further worker has the pace 1. equal,
    unequal: seconds of trials. In the last part, worker 0 breaks down in its second job. The second part also has what
    most_seconds says of it, where that is written.
    """
    if {"dispatch", "work", "seed_of", "plan"} & set(unwritten):
        return {}
    me, scheduler = dist.get_rank(), dist.get_world_size() - 1
    starts = [start for _, start in tasks.plan(unequal, scheduler)]
    in_order, planned = range(len(unequal)), sorted(range(len(unequal)), key=starts.__getitem__)
    pace = paces[me] if me < min(scheduler, len(paces)) else 1.0
    sleeps = [seconds * pace for seconds in equal]
    parts: list[tuple[str, Sequence[int], Sequence[float], bool]] = [
        ("slow_worker", range(len(equal)), sleeps, False),
        ("as_they_come", in_order, unequal, False),
        ("longest_first", planned, unequal, False),
        ("lost_worker", planned, unequal, me == 0),
    ]
    found: Arguments = {}
    for name, order, seconds, breaks in parts:
        dist.barrier()
        before = rank.now()
        if me < scheduler:
            tasks.work(0, _sleeper(tasks, seconds, breaks=breaks))
            continue
        living = list(range(scheduler))
        losses = tasks.dispatch([(trial, 0, 1) for trial in order], living, 3)
        seconds_taken = rank.now() - before
        by_trial = [float(loss) for _, loss in sorted(zip(order, losses, strict=True))]
        found[name] = {"seconds": seconds_taken, "losses": by_trial, "workers": len(living)}
        if name == "as_they_come" and "most_seconds" not in unwritten:
            found[name]["at_most"] = float(tasks.most_seconds(seconds, scheduler))
        for worker in living:
            dist.send(torch.full((3,), STOP, dtype=torch.float64), worker)
    return found


def _sleeper(
    tasks: ModuleType, seconds: Sequence[float], *, breaks: bool
) -> Callable[[int, int, int, int], float]:  # fmt: skip
    """Trains by sleeping. A loss depends on the trial's seed alone. breaks: whether its second job breaks it."""
    begun = 0

    def trained(trial: int, seed: int, start: int, stop: int) -> float:  # noqa: ARG001 - as in every training
        nonlocal begun
        begun += 1
        rank.busy(seconds[trial])
        if breaks and begun == 2:
            raise tasks.WorkerLostError("this worker breaks down")
        return float(np.random.default_rng(seed).random())

    return trained
