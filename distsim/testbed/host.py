"""The host process: it has imported torch once, and forks the ranks of every run. It runs no code but ours.

    python -m distsim.testbed.host DESCRIPTOR

For each run a *warden* is forked, which starts the ranks in their enclosure, hands their outputs to the testbed,
reports how they ended, and takes everything down when it is told to end.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from distsim.testbed import frames
from distsim.testbed.sandbox import Enclosure, Limits
from distsim.testbed.seat import Order, sit

ENDED = 0


def main() -> None:
    """Serves one testbed until it closes its end."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the testbed, which then ends the runs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a warden ended
    while True:
        try:
            job = frames.receive(channel)
        except EOFError:
            return
        _, descriptors, _, _ = socket.recv_fds(channel, 1, job["ranks"] + 1)
        pid = os.fork()
        if pid == 0:
            channel.close()
            _guard(job, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        frames.send(channel, {"warden": pid})


def _guard(job: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """The warden: ends with all of its ranks."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _leave)
    report, *lines = map(_socket, descriptors)
    orders = [Order(**order) for order in job["orders"]]
    bodies = [partial(_rank, order, lines, report) for order in orders]
    enclosure = Enclosure.start(
        bodies,
        folder=Path(job["folder"]),
        limits=Limits(**job["limits"]),
        keep=[line.fileno() for line in lines],
        private=not job["shared"],
        loopback=job["loopback"],
        trusted=job["trusted"],
        hidden=[Path(path) for path in job["hidden"]],
    )
    try:
        for line in lines:
            line.close()
        socket.send_fds(report, [b"o"], enclosure.outputs)
        frames.send(report, {"states": enclosure.wait()})
    finally:
        enclosure.kill()
        os._exit(ENDED)


def _rank(order: Order, lines: list[socket.socket], report: socket.socket) -> None:
    """Keeps one line and closes those of the others."""
    report.close()
    for number, line in enumerate(lines):
        if number != order.rank:
            line.close()
    sit(order, lines[order.rank])


def _socket(descriptor: int) -> socket.socket:
    return socket.socket(fileno=descriptor)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def described(order: Order) -> dict[str, Any]:
    """An order as a frame may hold it."""
    return asdict(order)


if __name__ == "__main__":
    main()
