"""A testbed, as checks use it: runs drivers on ranks over a switch, and tells what happened."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from distsim.cluster import Cluster
from distsim.testbed import frames
from distsim.testbed.log import Log
from distsim.testbed.requests import RequestError, obey
from distsim.testbed.sandbox import Limits
from distsim.testbed.switch import DeadlockError, Reply, Switch

LINKS = {"bandwidth": "1 Gbit/s", "latency": "100 us"}
VIRTUAL = "testbed"  # the back end whose network is the switch
REAL = "gloo"
KEPT_OUTPUT_BYTES = 64 * 2**10
MOST_OUTPUT_BYTES = 16 * 2**20  # more ends the run
END_SECONDS = 5.0
READ_BYTES = 2**20


@dataclass(frozen=True)
class Failure:
    """Why a rank did not finish, and the line of the student's file where it stood, where that is known."""

    text: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.where})" if self.where else self.text


@dataclass
class Run:
    """What one run showed.

    results: by rank, what its driver returned; None where it failed. failures: by rank; None where it finished.
    output: by rank, the beginning of what it printed. log: what passed the switch (empty on gloo). seconds: virtual
    time at the end (on gloo: real time).
    """

    results: list[Any]
    failures: list[Failure | None]
    output: list[str] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    seconds: float = 0.0
    first: int | None = None

    @property
    def failure(self) -> str | None:
        """The first cause of a failed run in one sentence; None where every rank finished."""
        if self.first is None:
            return None
        return f"rank {self.first}: {self.failures[self.first]}"


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
            raise ValueError(f"a cluster of {cluster.workers} workers cannot seat {world} ranks")
        orders = [
            {
                "function": function, "arguments": dict(given), "rank": rank, "world": world, "backend": backend,
                "start": start, "student": student,
            }
            for rank, given in enumerate(arguments)
        ]  # fmt: skip
        job = {
            "orders": orders, "ranks": world, "folder": str(self.folder), "limits": asdict(self._limits),
            "shared": shared or backend == REAL, "loopback": backend == REAL, "trusted": self._trusted,
            "hidden": [str(path) for path in self._hidden],
        }  # fmt: skip
        with self._started(job, world) as (report, lines):
            return _Watch(report, lines, Switch(cluster) if backend == VIRTUAL else None, deadline_seconds).watched()

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


class _Watch:
    """One run from the parent's side: reads lines and outputs, and lets the switch answer."""

    def __init__(
        self, report: socket.socket, lines: Sequence[socket.socket], switch: Switch | None, deadline_seconds: float
    ) -> None:
        self._lines, self._switch, self._report = list(lines), switch, report
        self._frames = [frames.Frames() for _ in lines]
        self._states: list[int] | None = None
        self._open = set(range(len(lines)))
        self._output = [bytearray() for _ in lines]
        self._printed = [0 for _ in lines]
        self._run = Run([None for _ in lines], [None for _ in lines])
        self._finished: set[int] = set()
        self._started = time.monotonic()
        self._deadline_seconds = deadline_seconds
        self._selector = selectors.DefaultSelector()

    def watched(self) -> Run:
        """The run, once all ranks have ended or one has failed."""
        descriptors: list[int] = []
        try:
            self._report.settimeout(END_SECONDS)
            _, descriptors, _, _ = socket.recv_fds(self._report, 1, len(self._lines))
            for number, line in enumerate(self._lines):
                line.setblocking(False)
                self._selector.register(line, selectors.EVENT_READ, ("line", number))
            for number, descriptor in enumerate(descriptors):
                os.set_blocking(descriptor, False)
                self._selector.register(descriptor, selectors.EVENT_READ, ("output", number))
            self._watch()
            self._drain(descriptors)
        finally:
            self._selector.close()
            for descriptor in descriptors:
                os.close(descriptor)
        self._run.output = [bytes(data).decode(errors="replace") for data in self._output]
        if self._switch is not None:
            self._switch.log.sort()
            self._run.log, self._run.seconds = self._switch.log, self._switch.now
        else:
            self._run.seconds = time.monotonic() - self._started
        return self._run

    def _watch(self) -> None:
        until = self._started + self._deadline_seconds
        while self._open and self._run.first is None:
            left = until - time.monotonic()
            if left <= 0.0:
                self._late()
                return
            for key, _ in self._selector.select(min(left, 0.5)):
                kind, number = key.data
                if kind == "line":
                    self._listen(number)
                else:
                    self._read(key.fd, number)
            self._settle()

    def _settle(self) -> None:
        switch = self._switch
        while switch is not None and switch.settled and not switch.over and self._run.first is None:
            try:
                replies = switch.settle()
            except DeadlockError as error:
                self._stuck(error)
                return
            for reply in replies:
                self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        done = {
            key: {"received": list(one.received), "source": one.source, "error": one.error}
            for key, one in reply.done.items()
        }
        line = self._lines[reply.rank]
        line.settimeout(END_SECONDS)
        try:
            frames.send(line, {"now": reply.now, "done": done})
        except OSError:
            self._gone(reply.rank)
        finally:
            line.setblocking(False)

    def _listen(self, rank: int) -> None:
        try:
            data = self._lines[rank].recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone(rank)
            return
        try:
            for message in self._frames[rank].feed(data):
                self._hear(rank, message)
        except (frames.FrameError, RequestError) as error:
            self._fail(rank, Failure(f"spoke to the network in a way that is not torch.distributed's: {error}"))

    def _hear(self, rank: int, message: Any) -> None:
        match message:
            case {"do": "result", "value": value}:
                self._run.results[rank] = value
                self._finished.add(rank)
            case {"do": "error", "text": str(text), "where": str(where)}:
                self._fail(rank, Failure(text[:2000], where[:200]))
            case _ if self._switch is not None:
                obey(self._switch, rank, message)
            case _:
                raise RequestError("a run on gloo has no switch")

    def _gone(self, rank: int) -> None:
        if rank not in self._open:
            return
        self._open.discard(rank)
        self._selector.unregister(self._lines[rank])
        if self._switch is not None:
            self._switch.leave(rank)
        if rank not in self._finished and self._run.failures[rank] is None:
            self._fail(rank, Failure(self._how(rank)))

    def _how(self, rank: int) -> str:
        """How a process ended that has said nothing."""
        return "its process ended before its work was done (os._exit, a crash, or a limit)"

    def _fail(self, rank: int, failure: Failure) -> None:
        self._run.failures[rank] = failure
        self._run.results[rank] = None
        if self._run.first is None:
            self._run.first = rank

    def _stuck(self, error: DeadlockError) -> None:
        for rank, wait in sorted(error.waits.items()):
            self._fail(rank, Failure(f"deadlock: no rank can go on, this one {wait}"))

    def _late(self) -> None:
        for rank in sorted(self._open - self._finished):
            self._fail(rank, Failure(f"not finished after {self._deadline_seconds:g} s, the deadline"))

    def _read(self, descriptor: int, rank: int) -> None:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(descriptor)
            return
        self._output[rank] += data[: max(KEPT_OUTPUT_BYTES - len(self._output[rank]), 0)]
        self._printed[rank] += len(data)
        if self._printed[rank] > MOST_OUTPUT_BYTES:
            self._fail(rank, Failure(f"printed more than {MOST_OUTPUT_BYTES // 2**20} MiB"))

    def _drain(self, descriptors: Sequence[int]) -> None:
        """What lies ready in the outputs."""
        open_ones = {key.fd: key.data[1] for key in self._selector.get_map().values() if key.data[0] == "output"}
        for descriptor in descriptors:
            if descriptor in open_ones:
                self._read(descriptor, open_ones[descriptor])
