"""A rank without torch that misbehaves as its job says: {"faults": {rank: name}, "others": name}."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading

from distsim.runtime.launch import rank_context


def wait() -> None:
    threading.Event().wait()


def forever() -> None:
    while True:
        pass


def busy_in_c() -> None:
    sum(itertools.repeat(0))  # never lets another thread of this process run


def raise_error() -> None:
    raise ValueError("broken on purpose")


def flood() -> None:
    line = "x" * 1023
    for _ in range(200_000):
        print(line)


def ignore_termination() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait()


def leave_a_child() -> None:
    # Out of the tree, out of the group, and deaf to SIGTERM.
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
    subprocess.Popen([sys.executable, "-c", script], start_new_session=True)


FAULTS = {
    "none": lambda: None,
    "raise": raise_error,
    "sys_exit": lambda: sys.exit(9),
    "exit": lambda: os._exit(7),
    "leave": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": os.abort,
    "kill_torchrun": lambda: (os.kill(os.getpgid(os.getppid()), signal.SIGKILL), wait()),
    "terminate_torchrun": lambda: (os.kill(os.getpgid(os.getppid()), signal.SIGTERM), wait()),
    "loop": forever,
    "busy_in_c": busy_in_c,
    "wait": wait,
    "flood": flood,
    "child": leave_a_child,
    "deaf": ignore_termination,
}

if __name__ == "__main__":
    with rank_context.entered() as context:
        fault = context.job["faults"].get(str(context.rank))
        context.slot.doing("its part" if fault else "recv from another rank", waiting=not fault)
        FAULTS[fault or context.job["others"]]()
