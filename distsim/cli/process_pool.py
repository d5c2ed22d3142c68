"""A pool of worker processes that end with the command that started them, however the command ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress

QUEUED_BESIDES = 1  # the pool's queue holds this many more pieces of work than there are processes


@contextmanager
def process_pool(workers: int | None) -> Iterator[Executor]:
    """An executor of `workers` processes (default: one per core). An error or Ctrl-C gives up unfinished work."""
    with ProcessPoolExecutor(workers, initializer=_begin) as processes:
        try:
            yield processes
        except BaseException:
            _give_up(processes, workers or os.cpu_count() or 1)
            raise


def _give_up(processes: ProcessPoolExecutor, count: int) -> None:
    # Processes may end only after the pool has dropped all cancelled work: otherwise the pool reports that work as lost
    # in a traceback. These pieces do not all fit into the queue, so when the last one runs, the work before is dropped.
    with suppress(BrokenProcessPool):
        *_, last = [processes.submit(int) for _ in range(count + QUEUED_BESIDES + 1)]
        last.add_done_callback(_terminate)
    processes.shutdown(cancel_futures=True)


def _terminate(_last: Future[int]) -> None:
    for process in multiprocessing.active_children():
        process.terminate()


def _begin() -> None:
    """Runs in each worker process before its first work."""
    # A terminal's Ctrl-C reaches all processes. A process that ended while holding the queue's lock would block others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent's end", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a worker process"
    parent.join()
    os._exit(128 + signal.SIGTERM)
