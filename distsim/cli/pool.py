"""Worker processes on this machine, which end with the command that started them, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def pool(workers: int | None) -> Iterator[Executor]:
    """An executor of so many processes (default: one per core); on an error, Ctrl-C too, what they do is given up."""
    with ProcessPoolExecutor(workers, initializer=_begin) as processes:
        try:
            yield processes
        except BaseException:
            processes.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


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
