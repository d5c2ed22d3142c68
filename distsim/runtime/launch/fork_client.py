"""Asks fork servers for processes, so that torch is imported once and not by each process of each run.

The first run of a launching process starts a fork server, which forks torchrun's agent for this run and for later ones.
The agent forks a fork server of its own, which forks the ranks. The agent itself must not fork ranks, because other
threads of it look up addresses, and a lookup locks a part of the C library. Where a process must not fork, there is no
server, and each agent and each rank is a new Python.
"""

from __future__ import annotations

import array
import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import psutil

from distsim.runtime.launch.fork_server import KERNELS_VARIABLE, NO_RUN, NUMBER_BYTES, TAKEN, number, serve
from distsim.runtime.launch.forked_program import may_fork
from distsim.runtime.launch.lifeline import RUN_VARIABLE

ACCEPT_SECONDS = 60.0  # until a server has taken a request; it may be importing for another thread's run
END_SECONDS = 1.0  # for a server to end
AGENT_IMPORTS = ("torch.distributed.run",)
# Beginnings of the variables that libraries read while they are imported. Other variables are each run's own.
READ_AT_IMPORT = (
    "PYTHON", "PYTORCH_", "TORCH", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "ATEN_", "DNNL_", "ONEDNN_", "NPY_",
    "CUDA_", "NCCL_", "KINETO_", "LD_", "MALLOC_", "GLIBC_", "PATH", "LC_", "LANG", "LOGLEVEL", "TZ",
)  # fmt: skip


class ForkedProcess:
    """A process that a server forks. It has the part of `subprocess.Popen` that launching and torchrun use.

    pid: None until the server has imported what the process needs, and has forked it.
    """

    def __init__(self, command: Sequence[str], report: int) -> None:
        self.args = command
        self.pid: int | None = None
        self.returncode: int | None = None
        self._report = report

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired where the process runs for more than `timeout` seconds."""
        give_up = None if timeout is None else time.monotonic() + timeout
        if self.pid is None and self.returncode is None:
            self.pid = self._told(give_up)
        if self.returncode is None:
            told = self._told(give_up)
            self.returncode = -signal.SIGKILL if told is None else told  # a server that is ended takes all below it
            os.close(self._report)
        return self.returncode

    def forked(self) -> int:
        """Waits for the pid. Raises ChildProcessError where the server has ended."""
        if self.pid is None:
            self.pid = self._told(None)
        if self.pid is None:
            raise ChildProcessError(f"the fork server has ended before it forked {self.args}")
        return self.pid

    def _told(self, give_up: float | None) -> int | None:
        """The next number that the server tells; None where it has ended."""
        if not _readable(self._report, None if give_up is None else give_up - time.monotonic()):
            raise subprocess.TimeoutExpired(self.args, 0.0)
        told = os.read(self._report, NUMBER_BYTES)  # a pipe takes so few bytes whole
        return int.from_bytes(told, signed=True) if told else None


def _readable(descriptor: int, seconds: float | None) -> bool:
    """Whether there is something to read, or the end, within so many seconds."""
    watched = select.poll()  # `select.select` takes no descriptor from 1024 on
    watched.register(descriptor, select.POLLIN)
    return bool(watched.poll(None if seconds is None else max(0.0, 1e3 * seconds)))


class ForkClient:
    """The end of a fork server's only client."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def fork(
        self, command: Sequence[str], environment: Mapping[str, str], *, imports: Iterable[str] = (),
        streams: Sequence[int] = (),
    ) -> ForkedProcess | None:  # fmt: skip
        """A process that will run `command` in this process's folder and on its cores. None where the server has ended.

        imports: modules that the server imports first. streams: as `fork_program` takes them.
        """
        request = {
            "command": list(command), "environment": dict(environment), "imports": list(imports), "folder": _folder(),
            "cores": sorted(os.sched_getaffinity(0)),
        }  # fmt: skip
        payload = json.dumps(request).encode()
        report, theirs = os.pipe()
        taken = False
        try:
            descriptors = array.array("i", [*streams, theirs])
            self._channel.sendmsg(
                [number(len(payload))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)], socket.MSG_NOSIGNAL
            )
            self._channel.sendall(payload, socket.MSG_NOSIGNAL)
            os.close(theirs)
            theirs = -1
            taken = _readable(report, ACCEPT_SECONDS) and os.read(report, 1) == TAKEN
        except OSError:
            taken = False
        finally:
            if theirs >= 0:
                os.close(theirs)
            if not taken:
                os.close(report)
        return ForkedProcess(command, report) if taken else None

    def close(self) -> None:
        """Asks no more. The server ends when all that it has forked has ended."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)  # also where a forked process holds this end, too
        self._channel.close()

    def forget(self) -> None:
        """Lets go of the server of the process that forked this one."""
        self._channel.close()


def _folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return None


class _StartedServer(ForkClient):
    """A server in a new Python. kind: what it has from its start."""

    def __init__(self, kind: object, environment: Mapping[str, str]) -> None:
        self.kind = kind
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", "distsim.runtime.launch.fork_server", str(theirs.fileno())],
                env={**environment, RUN_VARIABLE: NO_RUN}, cwd="/", pass_fds=[theirs.fileno()], process_group=0,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    def seconds(self) -> float:
        """Core-seconds of the server and of all that it has forked and that has ended; 0 once this process has them."""
        with suppress(psutil.NoSuchProcess):
            if self._process.returncode is None:
                return sum(psutil.Process(self._process.pid).cpu_times()[:4])  # user, system, and both of children
        return 0.0

    def close(self) -> None:
        super().close()
        with suppress(subprocess.TimeoutExpired):  # it serves another thread's run to its end
            self._process.wait(END_SECONDS)


_server: _StartedServer | None = None
_turn = threading.Lock()


def forked(
    command: Sequence[str], *, environment: Mapping[str, str], imports: Iterable[str], streams: tuple[int, int, int]
) -> ForkedProcess | None:
    """A process forked by this process's server, which is started where needed; None where nothing may fork."""
    global _server
    if not may_fork():
        return None
    kind = _kind(environment)
    imports = [*AGENT_IMPORTS, *imports]
    with _turn:
        process = None
        if _server is not None and _server.kind == kind:
            process = _server.fork(command, environment, imports=imports, streams=streams)
        if process is None:
            end()
            _server = _StartedServer(kind, environment)
            process = _server.fork(command, environment, imports=imports, streams=streams)
        return process


def server_seconds() -> float:
    """Core-seconds of this process's server, and of all that it has forked and that has ended; 0 without a server."""
    server = _server
    return 0.0 if server is None else server.seconds()


@atexit.register
def end() -> None:
    """Ends this process's server, if there is one, once its runs are over. The next run starts another."""
    global _server
    if _server is not None:
        _server.close()
        _server = None


def _in_a_forked_child() -> None:
    """A process that is forked from this one starts a server of its own."""
    global _server, _turn
    _turn = threading.Lock()
    if _server is not None:
        _server.forget()
        _server = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)


def _kind(environment: Mapping[str, str]) -> object:
    """What a server has from its start. A run that needs something else needs another server."""
    import resource  # not on every system

    limits = [resource.getrlimit(number) for name, number in vars(resource).items() if name.startswith("RLIMIT_")]
    with open("/proc/self/status") as status:
        (umask,) = [line for line in status if line.startswith("Umask:")]
    who = os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()
    variables = {name: text for name, text in environment.items() if name.startswith(READ_AT_IMPORT)}
    variables.pop(KERNELS_VARIABLE, None)
    return variables, limits, umask, os.getpriority(os.PRIO_PROCESS, 0), who


@contextmanager
def forked_ranks(modules: Iterable[str]) -> Iterator[None]:
    """While the block lasts, torchrun in this process starts its ranks by a server that this process forks.

    This process must have one thread. modules: imported here, before the fork. Changes nothing where nothing may fork.
    """
    if not may_fork():
        yield
        return
    for name in modules:
        importlib.import_module(name)
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        serve(theirs, None)
    theirs.close()
    server = ForkClient(ours)

    def forked_rank(_: SubprocessHandler, command: tuple[str, ...], environment: dict[str, str]) -> ForkedProcess:
        process = server.fork(command, environment)
        if process is None:
            raise ChildProcessError("the fork server of the ranks has ended")
        process.forked()
        return process

    SubprocessHandler._popen = forked_rank  # type: ignore[method-assign, assignment] # has what torchrun uses of a Popen
    try:
        yield
    finally:
        server.close()
        if _readable(ended := os.pidfd_open(pid), END_SECONDS):  # otherwise a rank cannot be ended
            os.waitpid(pid, 0)
        os.close(ended)
