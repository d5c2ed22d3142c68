"""The fork server: a process that has imported torch, and forks torchrun's agent for each run of its launching process.

    python -m distsim.runtime.launch.fork_server CHANNEL

The first run of a launching process starts the server, and later runs find torch imported, which saves seconds of each
start. The server ends with its launching process, or when nobody has asked it for some time. On systems where ranks are
not forked there is no server, and each agent is a new Python.
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
from typing import Any

from distsim.runtime.launch.forked_rank import ForkedRank, may_fork, settle_memory
from distsim.runtime.launch.lifeline import RUN_VARIABLE

IDLE_SECONDS = 120.0  # a server holds some hundred megabytes
AGENT_IMPORTS = ("torch.distributed.run",)
# Beginnings of the variables that libraries read while they are imported. Other variables are each run's own.
READ_AT_IMPORT = (
    "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "TORCH_", "LD_", "CUDA_", "NCCL_", "KINETO_", "PATH", "LC_", "LANG",
)  # fmt: skip
NO_RUN = "0" * 32  # as long as the id of a run
LENGTH_BYTES = 8


class ForkedAgent:
    """A process that the server has forked. It has the part of `subprocess.Popen` that a launcher uses."""

    def __init__(self, pid: int, report: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._report = report

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, negative for a signal. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("agent", timeout or 0.0)
            told = os.read(self._report, 16)
            os.close(self._report)
            self.returncode = int(told) if told else -signal.SIGKILL  # the server has been ended, and the agent with it
        return self.returncode


class _Server:
    """The launching process's end of its server."""

    def __init__(self, kind: object, environment: Mapping[str, str]) -> None:
        self.kind = kind
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", "distsim.runtime.launch.fork_server", str(theirs.fileno())],
                env={**environment, RUN_VARIABLE: NO_RUN}, cwd="/", pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> ForkedAgent | None:
        """The agent; None where the server has ended."""
        report, theirs = os.pipe()
        payload = json.dumps(request).encode()
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
        return ForkedAgent(int(told), report)

    def close(self) -> None:
        """Ends the server. Runs go on."""
        self._channel.close()
        self._process.wait()


_servers: dict[int, _Server] = {}  # by the process that started it: a forked process has no server yet
_turn = threading.Lock()


def forked(
    command: Sequence[str], *, environment: Mapping[str, str], imports: Iterable[str], streams: tuple[int, int, int]
) -> ForkedAgent | None:
    """A process that runs `command`, a Python program, with these modules imported; None where nothing can be forked.

    environment: all variables of the process. streams: its standard input, output and errors. It leads a session of its
    own, and has this process's folder, limits and cores.
    """
    if not may_fork():
        return None
    kind = _kind(environment)
    request = {
        "command": list(command), "environment": dict(environment), "imports": [*AGENT_IMPORTS, *imports],
        "folder": os.getcwd(), "cores": sorted(os.sched_getaffinity(0)),
    }  # fmt: skip
    with _turn:
        server = _servers.get(os.getpid())
        if server is not None and server.kind == kind and (agent := server.fork(request, streams)):
            return agent
        end()
        _servers[os.getpid()] = server = _Server(kind, environment)
        return server.fork(request, streams)


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


def main(channel: socket.socket, shown: int) -> None:
    """Serves until the launching process closes its end, or has not asked for some time and no agent runs.

    shown: where this program's first environment has the id of a run. The kernel shows that environment for each
    forked process, too, so the id of its run is written there before the fork.
    """
    agents = 0
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while ready := selector.select(None if agents else IDLE_SECONDS):
            for key, _ in ready:
                if key.fileobj is channel:
                    request, (*streams, report) = _received(channel)
                    _import(request["imports"])
                    ctypes.memmove(shown, request["environment"][RUN_VARIABLE].encode(), len(NO_RUN))
                    agent = ForkedRank(
                        request["command"], request["environment"], folder=request["folder"], cores=request["cores"],
                        streams=streams,
                    )  # fmt: skip
                    ctypes.memmove(shown, NO_RUN.encode(), len(NO_RUN))
                    os.write(report, str(agent.pid).encode())
                    for stream in streams:
                        os.close(stream)
                    selector.register(os.pidfd_open(agent.pid), selectors.EVENT_READ, (agent, report))
                    agents += 1
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    agent, report = key.data
                    with suppress(BrokenPipeError):  # the launching process no longer asks
                        os.write(report, str(agent.wait()).encode())
                    os.close(report)
                    agents -= 1


def _place_of(variable: str) -> int:
    """Where in memory this program's first environment has the value of a variable."""
    get = ctypes.CDLL(None).getenv
    get.argtypes, get.restype = [ctypes.c_char_p], ctypes.c_void_p
    return int(get(variable.encode()))


def _received(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A request and the descriptors that came with it. Raises EOFError where the launching process is gone."""
    length, descriptors, _, _ = socket.recv_fds(channel, LENGTH_BYTES, 4)
    payload = b""
    while length and len(payload) < int.from_bytes(length):
        part = channel.recv(int.from_bytes(length) - len(payload))
        if not part:
            raise EOFError("the launching process is gone")
        payload += part
    if not payload:
        raise EOFError("the launching process is gone")
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


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own, suppress(EOFError, ConnectionError):
        main(own, _place_of(RUN_VARIABLE))
    os._exit(0)  # an orderly end of torch takes a quarter of a second
