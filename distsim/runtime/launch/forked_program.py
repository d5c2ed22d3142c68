"""Forks a process that runs a Python program, from a process that has imported what the program needs.

A process may fork when it has loaded torch, as long as it has one thread: a lock that another thread holds is never
released in the child. The driver of a GPU does not survive a fork.

All processes of a run, and the programs beside it, stay in the session of the process that launches them. Linux shares
the cores first among sessions (`autogroup` in sched(7)), and then among the threads of each. A thread that a message
wakes preempts threads of other sessions, even where SCHED_BATCH forbids it (seen in Linux 6.18).
"""

from __future__ import annotations

import gc
import os
import runpy
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

LARGEST_DESCRIPTOR = 2**16
GPU_DEVICES = ("nvidia[0-9]*", "kfd", "dxg")  # of NVIDIA, of AMD, and of Windows for its Linux


def may_fork() -> bool:
    """Whether a process may fork here when it has loaded torch, and can wait for its children."""
    if not sys.platform.startswith("linux") or _has_gpu():
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):  # an old kernel, or a Python that was built for one
        return False
    return True


def _has_gpu() -> bool:
    """Asks the kernel, since a library that asks the driver may open the driver."""
    return any(file for pattern in GPU_DEVICES for file in Path("/dev").glob(pattern))


def settle_memory() -> None:
    """Prepares a process for forks: the collector of a child then writes to no page that all share."""
    gc.collect()
    gc.freeze()


def fork_program(
    command: Sequence[str], environment: Mapping[str, str], *, folder: str | None = None,
    cores: Iterable[int] | None = None, streams: Sequence[int] = (), prepare: Callable[[], None] | None = None,
) -> int:  # fmt: skip
    """The number of a forked process that runs a program. It leads a process group of its own.

    command: a Python, its options, and a script, or "-m" and a module; then the program's arguments. environment: all
    variables of the process. folder: in which it runs. cores: on which it runs. streams: its standard input, output and
    errors. None: those of this process. It inherits no other descriptor. prepare: called first in the process.
    """
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run(command, environment, folder, cores, streams, prepare)
    os.close(tell)
    os.read(ready, 1)  # ends when the child leads its group, since it has closed its end then
    os.close(ready)
    return pid


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: str | None, cores: Iterable[int] | None,
    streams: Sequence[int], prepare: Callable[[], None] | None,
) -> NoReturn:  # fmt: skip
    """Runs the program in this forked process, and ends the process with the code with which Python would end.

    It ends at once, whatever fails: nothing may go back into the code of the process that forked it.
    """
    code = 1
    try:
        if prepare is not None:
            prepare()
        os.setpgid(0, 0)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        # A new Python would not have the other descriptors of the process that forked it.
        os.closerange(3, LARGEST_DESCRIPTOR)
        _forget_handlers()
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # Python remembers the folder that a variable named
        if cores is not None:
            os.sched_setaffinity(0, cores)
        if folder is not None:
            os.chdir(folder)
            sys.path[0] = folder  # where a program of "-m" may be
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()  # Python seeds its own `random` anew in each fork, numpy does not
        program = list(command[1:])
        while program[0].startswith("-") and program[0] != "-m":
            program.pop(0)
        if program[0] == "-m":
            sys.argv = program[1:]
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = program
            sys.path[0] = str(Path(program[0]).absolute().parent)
            runpy.run_path(program[0], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if not isinstance(error.code, int | None):
            print(error.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _forget_handlers() -> None:
    """Signals do again what they do in a new Python."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
