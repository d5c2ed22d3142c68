"""The parent's side of one run: it reads from the ranks, lets the switch answer, and tells why a rank failed."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distsim.errors import RunError
from distsim.testbed import frames
from distsim.testbed.capped_output import Capped
from distsim.testbed.deadline import Deadline
from distsim.testbed.log import Log
from distsim.testbed.outbox import Outbox
from distsim.testbed.rank_requests import RankRequests, RequestError
from distsim.testbed.switch import DeadlockError, Reply, Switch

READ_BYTES = 2**20
LOOK_SECONDS = 0.5
ENDING_SECONDS = 2.0  # time for the runner to report how a process ended after its socket was closed
ENDED = "the ranks could not be started: the fork server has ended"
LONGEST_TEXT, LONGEST_PLACE = 2000, 200


@dataclass(frozen=True)
class Failure:
    """Why a rank did not finish, and its line in the student's file if known."""

    text: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.where})" if self.where else self.text


@dataclass
class Run:
    """The outcome of one run.

    results: what each rank's driver returned; None for a rank that failed. failures: by rank; None for a rank that
    finished. output: the beginning of what each rank printed. log: the switch's log (empty on gloo). seconds: virtual
    time at the end (on gloo: real time). first: the rank that failed first. late: whether the deadline ended the run.
    by_chance: whether the results may depend on who comes first in real time, as on gloo.
    """

    results: list[Any]
    failures: list[Failure | None]
    output: list[str] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    seconds: float = 0.0
    first: int | None = None
    late: bool = False
    by_chance: bool = False

    @property
    def failure(self) -> str | None:
        """The first cause of a failed run in one sentence; None where every rank finished."""
        if self.first is None:
            return None
        return f"rank {self.first}: {self.failures[self.first]}"


class RunMonitor:
    """Watches the ranks at the other ends of `lines`. report: the runner's socket. switch: None for gloo.

    tasks: what each rank is sent first.
    """

    def __init__(
        self, report: socket.socket, lines: Sequence[socket.socket], switch: Switch | None, deadline_seconds: float,
        tasks: Sequence[object] = (),
    ) -> None:  # fmt: skip
        self._report, self._lines, self._switch = report, list(lines), switch
        self._requests = None if switch is None else RankRequests(switch)
        self._outboxes, self._tasks = [Outbox(line) for line in lines], tasks
        self._heard = [frames.Frames() for _ in lines]
        self._reported = frames.Frames()
        self._open = set(range(len(lines)))
        self._vanished: dict[
            int, float
        ] = {}  # when each rank left without a last message; the report of its end is still to come
        self._endings: dict[int, str] = {}
        self._ended: dict[int, float] = {}  # when the end of each rank's process was reported
        self._refused: dict[int, str] = {}  # the network error that each rank has received
        self._outputs: list[Capped] = []
        self._places: dict[int, str] = {}  # where each rank computed when the deadline was near
        self._run = Run([None for _ in lines], [None for _ in lines], by_chance=switch is None)
        self._started = time.monotonic()
        self._deadline = Deadline(deadline_seconds, self._started)
        self._selector = selectors.DefaultSelector()

    def watched(self) -> Run:
        """Watches until all ranks have finished or one has failed. Raises RunError if the ranks cannot be started."""
        descriptors: list[int] = []
        try:
            data, descriptors, _, _ = socket.recv_fds(self._report, READ_BYTES, len(self._lines))
            self._outputs = [Capped(descriptor) for descriptor in descriptors]
            self._hear_runner(data)
            for rank, line in enumerate(self._lines):
                line.setblocking(False)
                self._selector.register(line, selectors.EVENT_READ, (self._attend, rank))
            for rank, output in enumerate(self._outputs):
                os.set_blocking(output.fileno(), False)
                self._selector.register(output, selectors.EVENT_READ, (self._read, rank))
            for rank, task in enumerate(self._tasks):
                self._send(rank, task)
            self._report.setblocking(False)
            self._selector.register(self._report, selectors.EVENT_READ, (self._listen_to_runner, -1))
            self._watch()
            for rank in range(len(self._outputs)):  # read the rest of the output
                self._read(rank)
        finally:
            self._selector.close()
            for descriptor in descriptors:
                os.close(descriptor)
        return self._told()

    def _told(self) -> Run:
        self._run.output = [output.text for output in self._outputs]
        self._run.seconds = time.monotonic() - self._started
        if self._switch is not None:
            self._switch.log.sort()
            self._run.log, self._run.seconds = self._switch.log, self._switch.now
        return self._run

    def _watch(self) -> None:
        while (self._open or self._vanished) and self._run.first is None:
            if self._deadline.passed(time.monotonic()):
                self._late()
                return
            for key, _ in self._selector.select(min(LOOK_SECONDS, self._deadline.seconds)):
                call, rank = key.data
                call(rank)
            self._fail_vanished()
            self._settle()

    def _settle(self) -> None:
        switch = self._switch
        while switch is not None and switch.settled and not switch.over and self._run.first is None:
            if self._vanished:
                return  # the vanished rank is the first cause
            try:
                replies = switch.settle()
            except DeadlockError as error:
                for rank, wait in sorted(error.waits.items()):
                    self._fail(rank, Failure(f"deadlock: no rank can go on, this one {wait}"))
                return
            for reply in replies:
                self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        for error in filter(None, (one.error for one in reply.done.values())):
            self._refused[reply.rank] = error
        done = {
            key: {"received": list(one.received), "source": one.source, "error": one.error}
            for key, one in reply.done.items()
        }
        try:
            self._send(reply.rank, {"now": reply.now, "done": done, "again": reply.again})
        except frames.FrameError as error:
            self._fail(reply.rank, Failure(f"received more than one message may hold: {error}"))

    def _send(self, rank: int, value: object) -> None:
        try:
            self._outboxes[rank].add(value)
        except OSError:
            self._left(rank, finished=False)
        else:
            self._await(rank)

    def _await(self, rank: int) -> None:
        """Wakes when the rank sends, and when its socket accepts more of an unsent answer."""
        events = selectors.EVENT_READ | (0 if self._outboxes[rank].empty else selectors.EVENT_WRITE)
        line = self._lines[rank]
        if self._selector.get_key(line).events != events:
            self._selector.modify(line, events, (self._attend, rank))

    def _attend(self, rank: int) -> None:
        if rank in self._open and not self._outboxes[rank].empty:
            try:
                self._outboxes[rank].send()
            except OSError:
                self._left(rank, finished=False)
            else:
                self._await(rank)
        self._listen(rank)

    def _listen(self, rank: int) -> None:
        if rank not in self._open:
            return
        try:
            data = self._lines[rank].recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._left(rank, finished=False)
            return
        try:
            for message in self._heard[rank].feed(data):
                if rank in self._open:  # messages after its last one are ignored
                    self._hear(rank, message)
        except (frames.FrameError, RequestError) as error:
            self._fail(rank, Failure(f"asked the network for what torch.distributed does not: {error}"))

    def _hear(self, rank: int, message: Any) -> None:
        match message:
            case {"do": "result"} if (
                rank in self._refused
            ):  # a rank could learn from the error message, past the network
                text = f"went on after an error of the network: {self._refused[rank]}"
                self._fail(rank, Failure(text[:LONGEST_TEXT]))
            case {"do": "result", "value": value}:
                self._run.results[rank] = value
                self._left(rank, finished=True)
            case {"do": "error", "text": str(text), "where": str(where)}:
                self._fail(rank, Failure(text[:LONGEST_TEXT], where[:LONGEST_PLACE]))
            case {"do": "place", "where": str(where)}:
                self._places[rank] = where[:LONGEST_PLACE]
            case _ if self._requests is not None:
                if not self._outboxes[rank].empty:
                    raise RequestError("it sent a request before it had read its answer")
                self._requests.obey(rank, message)
            case _:
                raise RequestError("there is no switch in a run on gloo")

    def _listen_to_runner(self, _rank: int) -> None:
        try:
            data = self._report.recv(READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._hear_runner(data)
        else:
            self._selector.unregister(self._report)

    def _hear_runner(self, data: bytes) -> None:
        if not data:
            raise RunError(ENDED)
        for message in self._reported.feed(data):
            if "error" in message:
                raise RunError(message["error"])
            if "computed" in message:
                self._deadline.computed(message["computed"], time.monotonic())
            if "rank" in message:
                self._endings[message["rank"]] = message["ending"]
                self._ended[message["rank"]] = time.monotonic()

    def _left(self, rank: int, *, finished: bool) -> None:
        self._open.discard(rank)
        self._selector.unregister(self._lines[rank])
        if self._switch is not None:
            self._switch.leave(rank, finished=finished)
        if not finished:
            self._vanished[rank] = time.monotonic()

    def _fail_vanished(self) -> None:
        """Fails ranks that left without a last message, once their end is reported.

        A rank also fails if its process has ended while another of its processes holds its socket open.
        """
        for rank, since in self._ended.items():
            if rank in self._open and time.monotonic() > since + ENDING_SECONDS:
                self._left(rank, finished=False)
        for rank, since in sorted(self._vanished.items()):
            if rank in self._endings or time.monotonic() > since + ENDING_SECONDS:
                del self._vanished[rank]
                ending = self._endings.get(rank, "its connection was closed")
                self._fail(rank, Failure(f"its process ended before its work was done: {ending}"))

    def _fail(self, rank: int, failure: Failure) -> None:
        self._run.failures[rank] = failure
        self._run.results[rank] = None
        if self._run.first is None:
            self._run.first = rank

    def _late(self) -> None:
        """Fails all unfinished ranks; running ranks come before ranks that wait."""
        self._run.late = True
        running = [] if self._switch is None else self._switch.running
        for rank in sorted(self._open, key=lambda rank: (rank not in running, rank)):
            text = f"not finished after {self._deadline.seconds:g} s, the deadline"
            self._fail(rank, Failure(text, self._places.get(rank, "")))

    def _read(self, rank: int) -> None:
        output = self._outputs[rank]
        if output.at_end:
            return
        try:
            output.read()
        except BlockingIOError:
            return
        if output.at_end and output.fileno() in self._selector.get_map():
            self._selector.unregister(output)
        if output.too_much:
            self._fail(rank, Failure(f"printed more than {output.bound_bytes // 2**20} MiB"))
