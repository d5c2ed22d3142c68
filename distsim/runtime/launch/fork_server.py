"""The fork server: a process that has imported torch, and forks the programs that a client asks for.

    python -m distsim.runtime.launch.fork_server CHANNEL

The first run of a launching process starts a fork server, which forks torchrun's agent for this run and for later ones:
so only the first run imports torch. The agent forks a fork server of its own, which forks the ranks. The agent itself
must not fork ranks, because other threads of it look up addresses, and a lookup locks a part of the C library.

A server ends with its client, or when nobody has asked it for some time. Where a process must not fork, there is no
server, and each agent and each rank is a new Python.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from distsim.runtime.launch.forked_program import fork_program, may_fork, settle_memory
from distsim.runtime.launch.lifeline import RUN_VARIABLE

IDLE_SECONDS = 120.0  # a server holds some hundred megabytes
AGENT_IMPORTS = ("torch.distributed.run",)
# Beginnings of the variables that libraries read while they are imported. Other variables are each run's own.
READ_AT_IMPORT = (
    "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "TORCH_", "LD_", "CUDA_", "NCCL_", "KINETO_", "PATH", "LC_", "LANG",
)  # fmt: skip
NO_RUN = "0" * 32  # as long as the id of a run
LENGTH_BYTES = 8


class ForkedProcess:
    """A process that a server has forked. It has the part of `subprocess.Popen` that launching and torchrun use."""

    def __init__(self, command: Sequence[str], pid: int, report: int) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self._report = report

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired where the process runs for more than `timeout` seconds."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            told = os.read(self._report, 16)
            os.close(self._report)
            self.returncode = int(told) if told else -signal.SIGKILL  # the server has been ended, and all below it
        return self.returncode


class ForkServer:
    """A client's end of its server."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def fork(
        self, command: Sequence[str], environment: Mapping[str, str], *, imports: Iterable[str] = (),
        streams: Sequence[int] = (),
    ) -> ForkedProcess | None:  # fmt: skip
        """A process that runs `command` in this process's folder and on its cores. None where the server has ended.

        imports: modules that the server imports first. streams: as `fork_program` takes them.
        """
        request = {
            "command": list(command), "environment": dict(environment), "imports": list(imports),
            "folder": os.getcwd(), "cores": sorted(os.sched_getaffinity(0)),
        }  # fmt: skip
        payload = json.dumps(request).encode()
        report, theirs = os.pipe()
        try:
            socket.send_fds(self._channel, [len(payload).to_bytes(LENGTH_BYTES)], [*streams, theirs])
            self._channel.sendall(payload)
        except OSError:
            os.close(report)
            return None
        finally:
            os.close(theirs)
        told = os.read(report, 16)
        if not told:
            os.close(report)
            return None
        return ForkedProcess(command, int(told), report)

    def close(self) -> None:
        """Ends the server. What it has forked goes on."""
        self._channel.close()


class _StartedServer(ForkServer):
    """A server in a new Python. kind: what it has from its start."""

    def __init__(self, kind: object, environment: Mapping[str, str]) -> None:
        self.kind = kind
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", "distsim.runtime.launch.fork_server", str(theirs.fileno())],
                env={**environment, RUN_VARIABLE: NO_RUN}, cwd="/", pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    def close(self) -> None:
        super().close()
        self._process.wait()


_servers: dict[int, _StartedServer] = {}  # by the process that started it: a forked process has no server yet
_turn = threading.Lock()


def forked(
    command: Sequence[str], *, environment: Mapping[str, str], imports: Iterable[str], streams: tuple[int, int, int]
) -> ForkedProcess | None:
    """A process forked by this process's server, which is started where needed; None where nothing may fork."""
    if not may_fork():
        return None
    kind = _kind(environment)
    imports = [*AGENT_IMPORTS, *imports]
    with _turn:
        server = _servers.get(os.getpid())
        process = None
        if server is not None and server.kind == kind:
            process = server.fork(command, environment, imports=imports, streams=streams)
        if process is None:
            end()
            _servers[os.getpid()] = server = _StartedServer(kind, environment)
            process = server.fork(command, environment, imports=imports, streams=streams)
        return process


@atexit.register
def end() -> None:
    """Ends this process's server, if there is one. The next run starts another."""
    if server := _servers.pop(os.getpid(), None):
        server.close()


def _kind(environment: Mapping[str, str]) -> object:
    """What a server has from its start. A run that needs something else needs another server."""
    import resource  # not on every system

    limits = [resource.getrlimit(number) for name, number in vars(resource).items() if name.startswith("RLIMIT_")]
    return {name: text for name, text in environment.items() if name.startswith(READ_AT_IMPORT)}, limits


def fork_ranks(modules: Iterable[str]) -> None:
    """From now on torchrun in this process starts its ranks by a server that this process, which has one thread, forks.

    modules: imported here, before the fork. Does nothing where nothing may fork.
    """
    if not may_fork():
        return
    for name in modules:
        importlib.import_module(name)
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _serve(theirs, None)
    theirs.close()
    server = ForkServer(ours)

    def forked_rank(_: SubprocessHandler, command: tuple[str, ...], environment: dict[str, str]) -> ForkedProcess:
        process = server.fork(command, environment)
        assert process is not None, "the fork server of the ranks has been ended"
        return process

    SubprocessHandler._popen = forked_rank  # type: ignore[method-assign, assignment] # has what torchrun uses of a Popen


def _serve(channel: socket.socket, shown: int | None) -> NoReturn:
    """Serves in this process, and ends it."""
    try:
        with channel, suppress(EOFError, ConnectionError):
            main(channel, shown)
    finally:
        os._exit(0)  # an orderly end of torch takes a quarter of a second


def main(channel: socket.socket, shown: int | None) -> None:
    """Serves until the client closes its end, or has not asked for some time while nothing that it asked for runs.

    shown: where this program's first environment has the id of a run. The kernel shows that environment for each
    forked process, too, so the id of its run is written there before the fork. None: the id is there already.
    """
    running = 0
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while ready := selector.select(None if running or shown is None else IDLE_SECONDS):
            for key, _ in ready:
                if key.fileobj is channel:
                    pid, report = _forked(channel, shown)
                    os.write(report, str(pid).encode())
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, report))
                    running += 1
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    pid, report = key.data
                    _, status = os.waitpid(pid, 0)
                    with suppress(BrokenPipeError):  # the client no longer asks
                        os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
                    os.close(report)
                    running -= 1


def _forked(channel: socket.socket, shown: int | None) -> tuple[int, int]:
    """Forks what the client asks for. Returns the process, and where to report of it."""
    request, (*streams, report) = _received(channel)
    _import(request["imports"])
    environment = request["environment"]
    if shown is not None:
        ctypes.memmove(shown, environment[RUN_VARIABLE].encode(), len(NO_RUN))
    pid = fork_program(
        request["command"], environment, folder=request["folder"], cores=request["cores"], streams=streams
    )
    if shown is not None:
        ctypes.memmove(shown, NO_RUN.encode(), len(NO_RUN))
    for stream in streams:
        os.close(stream)
    return pid, report


def _received(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A request and the descriptors that came with it. Raises EOFError where the client is gone."""
    length, descriptors, _, _ = socket.recv_fds(channel, LENGTH_BYTES, 4)
    payload = b""
    while length and len(payload) < int.from_bytes(length):
        part = channel.recv(int.from_bytes(length) - len(payload))
        if not part:
            raise EOFError("the client is gone")
        payload += part
    if not payload:
        raise EOFError("the client is gone")
    return json.loads(payload), descriptors


def _import(modules: Iterable[str]) -> None:
    """Imports what is not imported yet. What cannot be imported fails again in the agent, which tells it."""
    missing = [name for name in modules if name not in sys.modules]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as kernels:  # some modules of torch make a folder there
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = kernels
        for name in missing:
            with suppress(Exception):
                importlib.import_module(name)
    settle_memory()


def _place_of(variable: str) -> int:
    """Where in memory this program's first environment has the value of a variable."""
    get = ctypes.CDLL(None).getenv
    get.argtypes, get.restype = [ctypes.c_char_p], ctypes.c_void_p
    return int(get(variable.encode()))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), _place_of(RUN_VARIABLE))
