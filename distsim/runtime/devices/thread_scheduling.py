"""How the ranks of one machine share its cores: a rank's threads do not preempt other threads when they wake.

A message wakes a thread of gloo, which then spins on a lock. Linux lets a waking thread preempt the running thread.
Where ranks outnumber the cores, the preempted thread is often the one that holds the lock: it sends a message, which
wakes a thread of another rank. Then the first thread spins until the kernel's next tick, 4 ms away at 250 Hz. An
all-reduce of 16 kB took 0.3 to 8 ms, most often 4 or 8, where it should take 1. Under Linux's SCHED_BATCH (sched(7)) a
waking thread waits until the running thread sleeps or has used up its time slice. SCHED_BATCH needs no right, and
changes nothing where a core is free. It does not hold between sessions, see `launch.forked_program`.
"""

from __future__ import annotations

import os


def be_patient() -> bool:
    """This thread, and the threads that it starts from now on, get SCHED_BATCH. Returns whether they did.

    Nothing changes where the system has no SCHED_BATCH or forbids it, or where this thread already has a policy other
    than the default.
    """
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError:
        return False
    return True
