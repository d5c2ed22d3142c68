"""How the ranks of one machine take turns on its cores: the backend's threads do not push others aside when they wake.

A thread of gloo that is woken by a message looks, again and again, whether it may have a lock. Linux lets a thread that
wakes push aside the one that runs; where ranks outnumber the cores, that is often the very thread which holds the lock.
Then the one spins until the kernel's next tick, 4 ms away at 250 Hz, and the other waits for it: an all-reduce of 16 kB
took 0.3 to 8 ms, most often 4 or 8, in place of 1. Under Linux's SCHED_BATCH (sched(7)) a thread that wakes waits until
the running one sleeps or has had its turn. No right is needed for it, and where a core is free nothing changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def patient_threads() -> Iterator[None]:
    """Threads that are started in this block are scheduled as SCHED_BATCH, where the system has it; this one is not.

    Threads inherit the policy of the one that starts them, and keep it. Where the system has none, or forbids it, or
    this thread has a policy of its own already, all stays as it was.

    >>> with patient_threads():
    ...     patient = os.sched_getscheduler(0)
    >>> patient == os.SCHED_BATCH, os.sched_getscheduler(0) == os.SCHED_OTHER
    (True, True)
    """
    patient = _takes("SCHED_BATCH")
    try:
        yield
    finally:
        if patient:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _takes(policy: str) -> bool:
    """Whether this thread, which was scheduled as usual, is now scheduled so; a sandbox may forbid it."""
    if not hasattr(os, policy) or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    try:
        os.sched_setscheduler(0, getattr(os, policy), os.sched_param(0))
    except OSError:
        return False
    return True
