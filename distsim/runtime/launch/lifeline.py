"""A pipe that tells the processes of a run when the launching process is gone.

Only the launching process holds the write end, so reading ends when that process ends, however it ends. torchrun's
agent inherits the read end as its standard input, and each rank inherits it from the agent.
"""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable

RUN_VARIABLE = "DISTSIM_RUN"  # in the environment of every process of a run: the run's id


def keep(at_end: Callable[[], None], *, inherit: bool) -> None:
    """Calls `at_end` in a thread of its own when the launching process is gone. `at_end` should end this process.

    inherit: whether children get the lifeline as their standard input; otherwise they get an empty standard input.
    Does nothing where standard input is no lifeline, as in a rank that was started by hand.
    """
    if RUN_VARIABLE not in os.environ or not stat.S_ISFIFO(os.fstat(0).st_mode):
        return
    line = 0
    if not inherit:
        line = os.dup(0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)

    def watch() -> None:
        while os.read(line, 1):
            pass
        at_end()

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def broken() -> bool:
    """Whether standard input is a lifeline, and the launching process is gone."""
    watched = select.poll()
    watched.register(0, 0)  # asks for the hang-up alone, which poll always tells
    return RUN_VARIABLE in os.environ and any(event & select.POLLHUP for _, event in watched.poll(0))
