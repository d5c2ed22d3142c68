"""A testbed, as checks use it: runs drivers on ranks over a switch, and tells what happened."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from distsim.cluster import Cluster
from distsim.testbed import frames
from distsim.testbed.sandbox import Limits
from distsim.testbed.switch import Switch
from distsim.testbed.watch import Run, Watch

LINKS = {"bandwidth": "1 Gbit/s", "latency": "100 us"}
VIRTUAL = "testbed"  # the back end whose network is the switch
REAL = "gloo"
END_SECONDS = 5.0
READ_BYTES = 2**20


class Testbed:
    """Ranks over the files of `folder`: the lab's drivers (ranks.py) and the student's tasks.py.

    limits: of each run. trusted: without confinement, for code that one trusts or machines that cannot confine.
    hidden: folders that ranks must not read.
    """

    __test__ = False  # it is no test case

    def __init__(
        self, folder: Path, *, limits: Limits | None = None, trusted: bool = False, hidden: Sequence[Path] = ()
    ) -> None:
        self.folder = Path(folder)
        self._limits, self._trusted, self._hidden = limits or Limits(), trusted, list(hidden)
        self._host: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def __enter__(self) -> Testbed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the host process. A later run starts one anew."""
        if self._channel is not None:
            self._channel.close()
        if self._host is not None:
            with suppress(subprocess.TimeoutExpired):
                self._host.wait(END_SECONDS)
            self._host.kill()
            self._host.wait()
        self._host = self._channel = None

    def run(
        self,
        function: str,
        arguments: Sequence[Mapping[str, Any]],
        *,
        cluster: Cluster | None = None,
        backend: str = VIRTUAL,
        deadline_seconds: float = 20.0,
        start: bool = True,
        student: bool = True,
        shared: bool = False,
    ) -> Run:
        """Calls `function(tasks, **arguments[rank])` of ranks.py on so many ranks.

        cluster: its links; 1 Gbit/s and 100 us unless told. backend: "testbed", or "gloo" for the real one on this
        machine. deadline_seconds: of real time. start: starts torch.distributed first. student: without, the student's
        file is not loaded (for references). shared: ranks share their working folder.
        """
        world = len(arguments)
        cluster = cluster or Cluster.model_validate({"workers": world, **LINKS})
        if cluster.workers != world:
            raise ValueError(f"a cluster of {cluster.workers} workers has no room for {world} ranks")
        tasks = [
            {
                "function": function, "arguments": dict(given), "rank": rank, "world": world, "backend": backend,
                "start": start, "student": student,
            }
            for rank, given in enumerate(arguments)
        ]  # fmt: skip
        job = {
            "tasks": tasks, "ranks": world, "folder": str(self.folder), "limits": asdict(self._limits),
            "shared": shared or backend == REAL, "loopback": backend == REAL, "trusted": self._trusted,
            "hidden": [str(path) for path in self._hidden],
        }  # fmt: skip
        with self._started(job, world) as (report, lines):
            return Watch(report, lines, Switch(cluster) if backend == VIRTUAL else None, deadline_seconds).watched()

    @contextmanager
    def _started(self, job: dict[str, Any], world: int) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
        """The parent's ends of the warden's report and of the ranks' lines; all of the run has ended afterwards."""
        channel = self._connected()
        pairs = [socket.socketpair() for _ in range(world + 1)]
        try:
            frames.send(channel, job)
            socket.send_fds(channel, [b"d"], [theirs.fileno() for _, theirs in pairs])
            for _, theirs in pairs:
                theirs.close()
            warden = frames.receive(channel)["warden"]
            ours = [mine for mine, _ in pairs]
            try:
                yield ours[0], ours[1:]
            finally:
                _end(warden, ours[0])
        finally:
            for pair in pairs:
                for end in pair:
                    end.close()

    def _connected(self) -> socket.socket:
        if self._channel is None:
            self._channel, theirs = socket.socketpair()
            with theirs:
                self._host = subprocess.Popen(
                    [sys.executable, "-m", "distsim.testbed.host", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                )
        return self._channel


def _end(warden: int, report: socket.socket) -> None:
    """Ends a run: the warden takes its ranks with it, and its report is closed when it has gone."""
    with suppress(ProcessLookupError):
        os.kill(warden, signal.SIGTERM)
    report.settimeout(END_SECONDS)
    try:
        while report.recv(READ_BYTES):
            pass
    except (TimeoutError, ConnectionError):
        with suppress(ProcessLookupError):
            os.kill(warden, signal.SIGKILL)
