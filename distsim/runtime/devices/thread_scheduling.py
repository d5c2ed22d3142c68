"""How the ranks of one machine share its cores: the back end's threads do not preempt other threads when they wake.

A message wakes a thread of gloo, which then spins on a lock. Linux lets a waking thread preempt the running thread.
Where ranks outnumber the cores, the preempted thread is often the one that holds the lock. Then the first thread spins
until the kernel's next tick, 4 ms away at 250 Hz: an all-reduce of 16 kB took 0.3 to 8 ms, most often 4 or 8, where it
should take 1. Under Linux's SCHED_BATCH (sched(7)) a waking thread waits until the running thread sleeps or has used up
its time slice. SCHED_BATCH needs no right, and changes nothing where a core is free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def patient_threads() -> Iterator[None]:
    """Threads that are started in this block get SCHED_BATCH; this thread does not keep it.

    A thread inherits the scheduling policy of the thread that starts it. Nothing changes where the system has no
    SCHED_BATCH or forbids it, or where this thread already has a policy other than the default.

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
    """Gives this thread the policy if it has the default one, and returns whether it did. A sandbox may forbid it."""
    if not hasattr(os, policy) or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    try:
        os.sched_setscheduler(0, getattr(os, policy), os.sched_param(0))
    except OSError:
        return False
    return True
