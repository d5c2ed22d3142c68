"""A testbed, as checks use it: runs drivers on ranks over a switch, and tells what happened."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from distsim import toml
from distsim.cluster import Cluster
from distsim.errors import InputError, RunError
from distsim.testbed import frames, slow_imports
from distsim.testbed.environment import FORK_SERVER, kept_environment
from distsim.testbed.folder_copy import FolderCopy
from distsim.testbed.patience import Patience
from distsim.testbed.run_monitor import ENDED, Run, RunMonitor
from distsim.testbed.sandbox import Limits
from distsim.testbed.switch import Switch

LINKS = {"bandwidth": "1 Gbit/s", "latency": "100 us"}
VIRTUAL = "testbed"  # the back end whose network is the switch
REAL = "gloo"
END_SECONDS = 5.0
TELL_SHARE = 0.8  # of the deadline: from then on each rank that still computes tells its line
ABOUT_FILE, DRIVERS_FILE, STUDENT_FILE = "lab.toml", "ranks.py", "tasks.py"
READ_BYTES = 2**20


class Testbed:
    """Ranks over some files of `folder`: the lab's drivers, the student's file, and the `files` that lab.toml names.

    limits: of each run. trusted: run without confinement, for trusted code or for machines that cannot confine.
    seed: from 0 on, of all inputs that checks draw; checks draw from `rng`. server: where a fork server for several
    testbeds listens; default: one of its own.
    """

    __test__ = False  # pytest must not collect it

    def __init__(
        self,
        folder: Path,
        *,
        limits: Limits | None = None,
        trusted: bool = False,
        seed: int = 0,
        server: Path | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.seed = seed
        self.draw_for("")
        self._limits, self._trusted = limits or Limits(), trusted
        self._patience = Patience()
        self._server = server
        self._host: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def draw_for(self, check: str) -> None:
        """Sets `rng` anew from the seed and the name of a check. So no check moves the draws of another check.

        >>> testbed = Testbed(Path(), seed=7)
        >>> testbed.draw_for("sums")
        >>> first = testbed.rng.random()
        >>> testbed.draw_for("sums")
        >>> testbed.rng.random() == first
        True
        """
        self.rng = np.random.default_rng([self.seed, *check.encode()])

    def __enter__(self) -> Testbed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the fork server, and ends it if it is this testbed's own. A later run begins anew."""
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
        """Calls `function(tasks, **arguments[rank])` of ranks.py, one rank for each element of `arguments`.

        cluster: the links; default 1 Gbit/s and 100 us. backend: "testbed", or "gloo" for real messages on this
        machine. deadline_seconds: real time; less after an earlier run that was late (see `patience`), and more on a
        busy machine (see `deadline`). start: whether to start torch.distributed first. student: whether to load the
        student's file. shared: whether ranks share their working folder.
        """
        world = len(arguments)
        cluster = cluster or Cluster.model_validate({"workers": world, **LINKS})
        if cluster.workers != world:
            raise ValueError(f"a cluster of {cluster.workers} workers has no room for {world} ranks")
        path = self.folder / STUDENT_FILE
        file = path.read_bytes() if path.is_file() else b""
        seconds = self._patience.deadline_seconds(file, deadline_seconds)
        tasks = [
            {
                "function": function, "arguments": dict(given), "rank": rank, "world": world, "backend": backend,
                "start": start, "student": student, "tell_seconds": TELL_SHARE * seconds,
            }
            for rank, given in enumerate(arguments)
        ]  # fmt: skip
        job = {
            "ranks": world, "folder": str(self.folder.absolute()), "names": self._names(),
            "limits": asdict(self._limits), "shared": shared or backend == REAL, "loopback": backend == REAL,
            "trusted": self._trusted, "imports": self._imports(),
        }  # fmt: skip
        switch = Switch(cluster) if backend == VIRTUAL else None
        with self._started(job, world) as (report, lines):
            began = time.monotonic()
            run = RunMonitor(report, lines, switch, seconds, tasks).watched()
            self._patience.ended(file, time.monotonic() - began, late=run.late)
            return run

    def _names(self) -> list[str]:
        """The names of the files that ranks get."""
        about = self.folder / ABOUT_FILE
        further = toml.read(about.read_text("utf-8"), str(about)).get("files", []) if about.is_file() else []
        return [DRIVERS_FILE, STUDENT_FILE, *further]

    def _imports(self) -> list[str]:
        """The modules that the ranks may need, and that the fork server imports for all of them."""
        try:
            files = FolderCopy.of(self.folder, self._names(), most_bytes=self._limits.file_bytes)
        except InputError:  # the run itself will tell
            return []
        return slow_imports.needed(content for content, _ in files.contents.values())

    @contextmanager
    def _started(self, job: dict[str, Any], world: int) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
        """The parent's sockets to the runner and to each rank. On exit, all processes of the run have ended."""
        channel = self._connected()
        pairs = [socket.socketpair() for _ in range(world + 1)]
        try:
            frames.send(channel, job)
            socket.send_fds(channel, [b"d"], [theirs.fileno() for _, theirs in pairs])
            for _, theirs in pairs:
                theirs.close()
            try:
                runner = frames.receive(channel)["runner"]
            except EOFError:
                raise RunError(ENDED) from None
            ours = [mine for mine, _ in pairs]
            try:
                yield ours[0], ours[1:]
            finally:
                _end(runner, ours[0])
        finally:
            for pair in pairs:
                for end in pair:
                    end.close()

    def _connected(self) -> socket.socket:
        if self._channel is None and self._server is not None:
            self._channel = socket.socket(socket.AF_UNIX)
            try:
                self._channel.connect(str(self._server))
            except OSError:
                raise RunError(ENDED) from None
        elif self._channel is None:
            self._channel, theirs = socket.socketpair()
            with theirs:
                self._host = subprocess.Popen(
                    [*FORK_SERVER, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=kept_environment(),
                )
        return self._channel


def _end(runner: int, report: socket.socket) -> None:
    """Ends a run: the runner ends its ranks, and its report is closed when the runner is gone."""
    with suppress(ProcessLookupError):
        os.kill(runner, signal.SIGTERM)
    report.settimeout(END_SECONDS)
    try:
        while report.recv(READ_BYTES):
            pass
    except (TimeoutError, ConnectionError):
        with suppress(ProcessLookupError):
            os.kill(runner, signal.SIGKILL)
