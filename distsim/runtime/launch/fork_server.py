"""The fork server: a process that has imported torch, and forks the programs that its client asks for.

    python -m distsim.runtime.launch.fork_server CHANNEL

CHANNEL is the number of a socket's descriptor. `fork_client` is the other end. A server ends with its client, or when
nobody has asked it for some time.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

from distsim.runtime.launch.forked_program import fork_program, settle_memory
from distsim.runtime.launch.lifeline import RUN_VARIABLE

IDLE_SECONDS = 120.0  # a server holds some hundred megabytes
NO_RUN = "0" * 32  # as long as the id of a run
NUMBER_BYTES = 8
TAKEN = b"t"
KERNELS_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"  # a folder that some modules of torch make when they are imported


def number(value: int) -> bytes:
    """A number as it travels between client and server."""
    return value.to_bytes(NUMBER_BYTES, signed=True)


def serve(channel: socket.socket, shown: int | None) -> NoReturn:
    """Serves in this process, and ends it."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody could wait for a process
        with channel:
            main(channel, shown)
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc()
    finally:
        os._exit(0)  # an orderly end of torch takes a quarter of a second


def main(channel: socket.socket, shown: int | None) -> None:
    """Serves until the client asks no more and all that it asked for has ended, or nothing happens for some time.

    shown: where this program's first environment has the id of a run. The kernel shows that environment for each
    forked process, too, so each writes the id of its run there. None: the id is there already.
    """
    running, asking = 0, True
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while asking or running:
            ready = selector.select(None if running or shown is None else IDLE_SECONDS)
            if not ready and not running:
                return
            for key, _ in ready:
                if key.fileobj is not channel:
                    selector.unregister(key.fd)
                    _ended(key.fd, *key.data)
                    running -= 1
                elif (request := _received(channel)) is None:
                    selector.unregister(channel)
                    asking = False
                else:
                    pid, report = _forked(*request, shown)
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, report))
                    running += 1


def _forked(request: dict[str, Any], descriptors: list[int], shown: int | None) -> tuple[int, int]:
    """Forks what the client asks for. Returns the process, and where to report of it."""
    *streams, report = descriptors
    with suppress(BrokenPipeError):  # the client no longer asks; the process sees the end of its lifeline
        os.write(report, TAKEN)
    _import(request["imports"])
    environment = request["environment"]

    def show() -> None:
        if shown is not None:
            ctypes.memmove(shown, environment[RUN_VARIABLE].encode(), len(NO_RUN))

    pid = fork_program(
        request["command"], environment, folder=request["folder"], cores=request["cores"], streams=streams,
        prepare=show,
    )  # fmt: skip
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError):
        os.write(report, number(pid))
    return pid, report


def _ended(pidfd: int, pid: int, report: int) -> None:
    """Reports how a process has ended."""
    os.close(pidfd)
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(report, number(os.waitstatus_to_exitcode(status)))
    os.close(report)


def _received(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """A request and the descriptors that came with it; None where the client asks no more."""
    try:
        length, descriptors, _, _ = socket.recv_fds(channel, NUMBER_BYTES, 4)
        payload = b""
        while length and len(payload) < int.from_bytes(length):
            part = channel.recv(int.from_bytes(length) - len(payload))
            if not part:
                return None
            payload += part
    except ConnectionError:
        return None
    return (json.loads(payload), descriptors) if payload else None


def _import(modules: Iterable[str]) -> None:
    """Imports what is not imported yet. What cannot be imported fails again in the agent, which tells it."""
    missing = [name for name in modules if name not in sys.modules]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as kernels:
        os.environ[KERNELS_VARIABLE] = kernels
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
    serve(socket.socket(fileno=int(sys.argv[1])), _place_of(RUN_VARIABLE))
