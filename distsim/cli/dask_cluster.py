"""A Dask cluster that somebody started, as an executor.

Dask gives the work of a lost worker process to another process. A piece of work that has ended several processes
ends the command, with a message.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import click

from distsim.cli.output import warn
from distsim.cli.process_pool import process_pool
from distsim.errors import InputError, RunError
from distsim.extras import pip_install

MOST_TOGETHER = 32  # runs in one piece of work: a short run takes as long as Dask's scheduler needs for a piece
PIECES_PER_THREAD = 8  # at least, so that all threads are busy until the end


scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://127.0.0.1:8786."
)


@contextmanager
def pool_or_cluster(
    scheduler: str | None, workers: int | None, runs: int, again: str = "and repeat the command"
) -> Iterator[tuple[Executor, int]]:
    """The executor, and how many of `runs` one piece of its work should have.

    scheduler: the address of a Dask cluster's; None: processes of this machine. workers: processes of this machine.
    again: what to do where the cluster is lost, the end of a cure.
    """
    if scheduler is None:
        with process_pool(workers) as processes:
            yield processes, 1
        return
    with dask_cluster(scheduler, runs, again) as found:
        yield found


@contextmanager
def dask_cluster(scheduler: str, runs: int, again: str) -> Iterator[tuple[Executor, int]]:
    """The same, of the cluster with this scheduler's address.

    An error or Ctrl-C gives up unfinished work. Raises InputError where Dask is missing or the address does not answer,
    and RunError where the cluster is lost.
    """
    with _connected(scheduler) as client:
        from distributed.scheduler import KilledWorker

        executor = client.get_executor(pure=False)
        try:
            yield executor, _together(client, runs)
        except KilledWorker as error:
            raise RunError(
                f"--scheduler {scheduler}: {error.allowed_failures + 1} worker processes ended one after the other "
                f"while they computed the same runs. Cure: give workers more memory, {again}"
            ) from None
        except CancelledError:
            raise RunError(f"--scheduler {scheduler}: the scheduler is gone. Cure: start a cluster, {again}") from None
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """Dask's client. Its log is silent meanwhile: it shows tracebacks where the messages here tell all that matters."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError.of(
            "--scheduler", scheduler, "needs Dask, which is not installed", pip_install("distributed")
        ) from None
    try:
        address = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
        if not address.port:
            raise ValueError("it has no port")
        client = Client(scheduler, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        rule = f"does not answer ({error or type(error).__name__})"
        raise InputError.of(
            "--scheduler", scheduler, rule, "start it with dask scheduler, and name its address"
        ) from None
    logging.disable()
    try:
        with client:
            yield client
    finally:
        logging.disable(logging.NOTSET)


def _together(client: Any, runs: int) -> int:
    threads: int = sum(client.ncores().values())
    if not threads:
        warn(["the Dask cluster has no worker yet; the sweep waits for one"])
    return max(1, min(MOST_TOGETHER, runs // (PIECES_PER_THREAD * max(threads, 1))))
