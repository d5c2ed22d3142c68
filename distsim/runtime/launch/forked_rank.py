"""A rank that torchrun forks from its own process, which has imported what ranks need: a run imports torch once.

By itself torchrun starts a new Python for each rank, and each imports torch for some seconds of a core. distsim forks
its ranks on Linux, where a process may fork when it has loaded libraries. The driver of a GPU does not survive a fork:
on a machine with GPUs, as on other systems, torchrun starts a new Python for each rank.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

LOOK_SECONDS = 0.005
LARGEST_DESCRIPTOR = 2**16
GPU_DEVICES = ("nvidia[0-9]*", "kfd", "dxg")  # of NVIDIA, of AMD, and of Windows for its Linux


def fork_ranks(modules: Iterable[str]) -> None:
    """From now on torchrun forks its ranks from this process. modules: imported here, before the first rank starts.

    Does nothing where ranks cannot be forked.
    """
    if not may_fork():
        return
    for name in modules:
        importlib.import_module(name)
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    def forked(_: SubprocessHandler, command: tuple[str, ...], environment: dict[str, str]) -> ForkedRank:
        return ForkedRank(command, environment)

    SubprocessHandler._popen = forked  # type: ignore[method-assign, assignment] # has what torchrun uses of a Popen
    settle_memory()


def may_fork() -> bool:
    """Whether a process may fork here when it has loaded torch."""
    return sys.platform.startswith("linux") and not _has_gpu()


def settle_memory() -> None:
    """Prepares a process for forks: the collector of a child then writes to no page that all share."""
    gc.collect()
    gc.freeze()


def _has_gpu() -> bool:
    """Asks the kernel, since a library that asks the driver may open the driver."""
    return any(file for pattern in GPU_DEVICES for file in Path("/dev").glob(pattern))


class ForkedRank:
    """A forked process that runs a Python program. It has the part of `subprocess.Popen` that torchrun uses.

    command: a Python, its options, and a script, or "-m" and a module; then the program's arguments. environment: all
    variables of the process. folder: in which it runs. cores: on which it runs. streams: its standard input, output and
    errors. None: those of this process. It leads a session of its own, and inherits no other descriptor.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, folder: str | None = None,
        cores: Iterable[int] | None = None, streams: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.args = command
        self.returncode: int | None = None
        ready, tell = os.pipe()
        with warnings.catch_warnings():
            # Python warns of threads that may hold a lock. Those of torchrun share no lock with what a rank does.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _run(command, environment, folder, cores, streams)
        os.close(tell)
        os.read(ready, 1)  # ends when the child leads its session, since it has closed its end then
        os.close(ready)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired where the process runs for more than `timeout` seconds."""
        give_up = float("inf") if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > give_up:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(LOOK_SECONDS)
        return code


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: str | None, cores: Iterable[int] | None,
    streams: Sequence[int],
) -> NoReturn:  # fmt: skip
    """Runs the program in this forked process, and ends the process with the code with which Python would end.

    It ends at once, whatever fails: nothing may go back into torchrun's code, from which the process was forked.
    """
    code = 1
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        # A new Python would not have torchrun's connections to other machines.
        os.closerange(3, LARGEST_DESCRIPTOR)
        _forget_handlers()
        os.environ.clear()
        os.environ.update(environment)
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
