"""The fork server: a process that imports torch once and forks the ranks of every run. It runs only our own code.

    python -m distsim.testbed.fork_server CHANNEL
        for the testbed at the other end of this socket
    python -m distsim.testbed.fork_server LISTENER - [MODULE ...]
        for all testbeds that connect, until standard input ends; it imports the modules before the first one asks

CHANNEL and LISTENER are numbers of descriptors. The fork server forks a *runner* for each run. The runner starts the
ranks in their sandbox, hands their outputs to the testbed, reports how the ranks ended, and ends everything when it
gets SIGTERM.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from distsim.errors import DistsimError
from distsim.testbed import frames, large_pages
from distsim.testbed.deadline import Computed
from distsim.testbed.namespaces import python_places
from distsim.testbed.sandbox import Limits, Sandbox

LOOK_SECONDS = 0.02
TELL_SECONDS = 1.0


def main() -> None:
    """Serves one testbed until it closes its end of the socket, or several until standard input ends."""
    first, several, imports = _socket(int(sys.argv[1])), sys.argv[2:3] == ["-"], sys.argv[3:]
    lifeline = _without_input()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the testbed, which then ends the runs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps runners
    gc.disable()  # imports leave nothing to collect
    importlib.import_module("distsim.testbed.rank_main")  # with torch
    _import(imports)
    python_places()  # once for all runs
    listening: list[socket.socket | int] = [first, lifeline] if several else []
    channels = [] if several else [first]
    while listening or channels:
        ready, _, _ = select.select([*listening, *channels], [], [])
        if lifeline in ready:
            return
        if listening and first in ready:
            channels.append(first.accept()[0])
        for channel in [one for one in channels if one in ready]:
            try:
                _serve(channel, [lifeline, first.fileno(), *(one.fileno() for one in channels)])
            except (EOFError, ConnectionError):  # this testbed is gone
                channels.remove(channel)
                channel.close()


def _without_input() -> int:
    """Gives ranks an empty standard input. Returns a descriptor of this process's own."""
    own, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return own


def _serve(channel: socket.socket, held: Iterable[int]) -> None:
    """Takes one job from a testbed and forks its runner, which lets go of the descriptors that this process holds."""
    job = frames.receive(channel)
    told, descriptors, _, _ = socket.recv_fds(channel, 1, job["ranks"] + 1)
    if not told:
        raise EOFError("the testbed is gone before it has given the descriptors of its run")
    if missing := [name for name in job["imports"] if name not in sys.modules]:
        _import(missing)
    pid = os.fork()
    if pid == 0:
        for descriptor in set(held):
            os.close(descriptor)
        _run(job, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    frames.send(channel, {"runner": pid})


def _import(names: Iterable[str]) -> None:
    """Imports modules that take seconds, so that it happens once, here, and prepares the memory for forks.

    A rank itself tells about a missing module. torch's optimizers create a folder for compiled kernels, which must not
    stay among the temporary files.
    """
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for name in names:
            with suppress(ImportError):
                importlib.import_module(name)
    del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    gc.freeze()  # otherwise each rank's garbage collector would visit, and so copy, all pages of torch's objects
    gc.enable()
    large_pages.gather()


def _run(job: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """The runner of one run. It ends together with its ranks."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _leave)
    from distsim.testbed.rank_main import run_rank  # imports torch, and has been imported before the fork

    report, *lines = map(_socket, descriptors)
    try:
        with Sandbox.start(
            [partial(run_rank, line) for line in lines],
            folder=Path(job["folder"]),
            names=job["names"],
            limits=Limits(**job["limits"]),
            keep=[[line.fileno()] for line in lines],
            private=not job["shared"],
            loopback=job["loopback"],
            trusted=job["trusted"],
        ) as sandbox:
            for line in lines:
                line.close()
            socket.send_fds(report, [frames.pack({"started": True})], sandbox.outputs)
            _report(sandbox, report)
    except DistsimError as error:
        frames.send(report, {"error": str(error)})
    finally:
        os._exit(0)


def _report(sandbox: Sandbox, report: socket.socket) -> None:
    """Reports how each rank ended, as soon as it has ended, and now and then how long all ranks have computed."""
    told: set[int] = set()
    computed, tell_at = Computed(sandbox.pids), time.monotonic()
    while len(told) < len(sandbox.endings):
        if time.monotonic() >= tell_at:
            frames.send(report, {"computed": computed.seconds()})
            tell_at += TELL_SECONDS
        for rank, ending in enumerate(sandbox.wait(LOOK_SECONDS)):
            if ending is not None and rank not in told:
                told.add(rank)
                frames.send(report, {"rank": rank, "ending": str(ending)})


def _socket(descriptor: int) -> socket.socket:
    return socket.socket(fileno=descriptor)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
