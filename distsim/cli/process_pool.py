"""Worker processes on this machine, which end with the command that started them, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress

QUEUED_BESIDES = 1  # how many more pieces than processes the pool's queue holds


@contextmanager
def process_pool(workers: int | None) -> Iterator[Executor]:
    """An executor of so many processes (default: one per core); on an error, Ctrl-C too, what they do is given up."""
    with ProcessPoolExecutor(workers, initializer=_begin) as processes:
        try:
            yield processes
        except BaseException:
            _give_up(processes, workers or os.cpu_count() or 1)
            raise


def _give_up(processes: ProcessPoolExecutor, count: int) -> None:
    # Processes may only be ended once the pool has forgotten all cancelled work, which it would else count as lost, in
    # a traceback of its own. It has when it comes to the last piece of so many that they do not fit into its queue.
    with suppress(BrokenProcessPool):
        *_, last = [processes.submit(int) for _ in range(count + QUEUED_BESIDES + 1)]
        last.add_done_callback(_terminate)
    processes.shutdown(cancel_futures=True)


def _terminate(_last: Future[int]) -> None:
    for process in multiprocessing.active_children():
        process.terminate()


def _begin() -> None:
    """In each worker process, before its first work."""
    # A terminal's Ctrl-C reaches all processes; one that it met while it held the queue's lock would block the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent's end", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a worker process"
    parent.join()
    os._exit(128 + signal.SIGTERM)
