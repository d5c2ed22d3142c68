"""A search, really run: processes of this machine, or any executor, such as that of a Dask client."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier

from distsim.errors import InputError
from distsim.progress import Phase, Report
from distsim.search.job import Job, Placed, Source
from distsim.theory.arguments import at_least

Train = Callable[[Job], float]
Timed = tuple[tuple[str, int], float, float, float]  # host and process, start, end, loss
START_SECONDS = 120.0  # until all processes have imported torch, on a busy machine


@contextmanager
def processes(workers: int, train: Train, warm_up: Job | None = None) -> Iterator[Executor]:
    """Processes that each use one thread, ready to train: the modules of `train` are imported before this returns.

    warm_up: a short job that each process does first, so that no trial waits for what is loaded at its first use.

    Each starts as a new Python, so `train` must be a function that it can import: of a file, not of a notebook's cell.
    All of them end with the context, also where a trial raises an error. Raises InputError where they cannot begin.
    """
    at_least(1, workers=workers)
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(workers)
    with ProcessPoolExecutor(workers, spawn, _begin, (ready, train, warm_up)) as pool:
        try:
            list(pool.map(abs, range(workers)))  # starts all of them
        except BrokenProcessPool as error:
            raise InputError.of(
                "train", f"{train.__module__}.{train.__qualname__}",
                "cannot be imported by a new Python process, or its warm-up failed; the process has told why",
                "write the function in a file beside the notebook, and import it",
            ) from error  # fmt: skip
        yield pool


def _begin(ready: Barrier, train: Train, warm_up: Job | None) -> None:
    """In each process: one thread, the job to warm up with, and a wait for the others."""
    import torch

    torch.set_num_threads(1)
    if warm_up is not None:
        train(warm_up)
    ready.wait(START_SECONDS)


def measured_search(
    source: Source, workers: int, train: Train, executor: Executor, report: Report | None = None
) -> list[Placed]:
    """Runs a search: at any time, `workers` jobs are with the executor as long as the source has them.

    train: computes a job's loss, in a process of the executor. Times are those of the processes' own clock, from the
    first start on; on several machines they mean nothing. Raises what `train` raises.
    """
    running: dict[Future[Timed], Job] = {}
    found: list[tuple[Job, tuple[str, int], float, float, float]] = []
    while True:
        while len(running) < workers and (job := source.job()) is not None:
            running[executor.submit(_timed, train, job)] = job
        if not running:
            break
        if report:
            report(Phase(f"{len(found)} done, {len(running)} running"))
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            job = running.pop(future)
            found.append((job, *future.result()))
            source.done(job, found[-1][-1])
    found.sort(key=lambda one: one[2])
    zero = found[0][2] if found else 0.0
    numbers = {process: number for number, process in enumerate(dict.fromkeys(one[1] for one in found))}
    return [Placed(job, numbers[process], start - zero, end - zero, loss) for job, process, start, end, loss in found]


def _timed(train: Train, job: Job) -> Timed:
    """The process, the start and the end on its machine's clock, and the loss."""
    start = time.monotonic()
    loss = train(job)
    return (socket.gethostname(), os.getpid()), start, time.monotonic(), float(loss)
