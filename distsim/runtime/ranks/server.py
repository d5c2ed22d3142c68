"""The parameter server: receive -> decide -> apply -> answer, until the policy's last update.

receive: the server takes the next push, as the scenario's `receive` says. decide: the policy's own rule decides on the
push; the simulator asks the same object. apply: the gradients of an update change the parameters. answer: each worker
that may go on is sent the parameters of the newest version, while other messages travel.

After the last update no push counts. Every worker is sent a stop with the last parameters; a worker that still computes
gets it when its push has come. The server leaves when all workers have said goodbye. Each of several servers does this
with its share of the parameters, and a worker goes on until all servers have told it to stop.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from distsim.policies import Rule
from distsim.policies.rule_errors import no_answer, unasked_answer, wrong_answer, wrong_version
from distsim.runtime.ranks.failures import FailureRecovery, Saved
from distsim.runtime.ranks.server_parameters import DisagreementError, FirstParameters, Parameters
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.channel import Channel
from distsim.runtime.transport.inbox import Arrival, inbox
from distsim.runtime.transport.messages import MessageKind
from distsim.runtime.transport.senders import Senders, Sending


@dataclass(frozen=True)
class ServerTask:
    """A server's task: `updates` updates as `rule` decides.

    cancels: whether the rule may answer a worker that has not pushed. progress: called with each new version. weight:
    the factor by which gradients are too large. model: the share of a model that is learned; None: no model.
    recovery: only in a run with failures.
    """

    rule: Rule
    workers: int
    updates: int
    floats: int
    receive: str
    cancels: bool
    progress: Callable[[int], object]
    weight: int = 1
    model: FirstParameters | None = None
    recovery: FailureRecovery | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A worker that waits for an answer: after which of its steps, and since when."""

    step: int
    since_seconds: float


class Server:
    """The role of one server."""

    def __init__(self, task: ServerTask, channels: Sequence[Channel], recorder: Recorder, slot: StatusSlot) -> None:
        self._task = task
        self._slot = slot
        self._inbox = inbox(task.receive, channels, task.floats)
        self._senders = Senders(channels)
        self._arrived = recorder.table("arrivals")
        self._answered = recorder.table("answers")
        self._updated = recorder.table("updates")
        self._applied = recorder.table("applied")
        self._dropped = recorder.table("dropped")
        self._cancelled = recorder.table("cancelled")
        self._facts = recorder.facts
        self._counts = {"applied": 0, "dropped": 0, "staleness": 0}

        self._parameters = Parameters(task.floats, task.workers, task.updates, task.weight, task.model)
        self._contributors: list[tuple[int, int, int]] = []  # worker, step, read_version of what is pending
        self._reading = [0] * task.workers  # the version that each worker was last sent
        self._waiting: dict[int, Waiting] = {}  # workers whose push has come
        self._through: set[int] = set()  # workers that have done all their steps
        self._stopped: set[int] = set()  # workers that have been told to stop
        self._on_the_way: list[deque[Sending]] = [deque() for _ in range(task.workers)]

    @property
    def over(self) -> bool:
        """Whether the last update has been made."""
        return self._parameters.version >= self._task.updates

    def run(self, start: float) -> None:
        """Makes all updates, and stops the workers."""
        del start  # a server acts when a message comes
        if self._task.recovery is not None and self._task.recovery.saved.update:
            self._come_back(self._task.recovery.saved)
        while not self.over and len(self._through) < self._task.workers:
            arrival = self._receive()
            if arrival.message.kind is MessageKind.PUSH:
                self._decide(arrival)
            else:
                self._through.add(arrival.worker)
                self._inbox.free(arrival.worker)
                self._check_somebody_comes()
        self._finish()
        self._parameters.verify()
        self._facts |= {"num_bytes": self._parameters.newest.num_bytes, "counts": self._counts}

    def _come_back(self, saved: Saved) -> None:
        """Goes on from a checkpoint: tells the rule all earlier arrivals, and sends all workers the parameters."""
        for version in range(saved.update):
            for worker in range(self._task.workers):
                self._task.rule.arrived(worker, version, version)
        self._parameters.restore(saved.update, saved.state)
        for worker in range(self._task.workers):
            self._answered((worker, self._parameters.version, math.nan, time.monotonic()))
            self._send(worker)

    def _receive(self) -> Arrival:
        self._slot.doing(f"recv from {self._expected()}", waiting=True)
        arrival = self._inbox.get()
        self._slot.doing(f"work on the message of worker {arrival.worker}")
        return arrival

    def _decide(self, arrival: Arrival) -> None:
        worker, message = arrival.worker, arrival.message
        step, read_version = message.step, message.version
        if self._record(arrival):
            self._inbox.free(worker)
            return
        decision = self._task.rule.arrived(worker, step, read_version)
        begin = arrival.seconds
        if decision.applied:
            begin = time.monotonic()
            self._parameters.add(worker, message.payload)
            self._contributors.append((worker, step, read_version))
        else:
            self._dropped((worker, step, read_version))
            self._counts["dropped"] += 1
        self._inbox.free(worker)
        if decision.version is not None:
            if decision.version != self._parameters.version + 1:
                raise wrong_version(worker, step, decision.version, self._parameters.version)
            self._apply(begin)
            if self._task.recovery is not None:
                version = self._parameters.version
                self._task.recovery.after_update(version, version, time.monotonic(), self._parameters.state)
        self._answer(decision.answers, worker, step)
        self._check_somebody_comes()

    def _record(self, arrival: Arrival) -> bool:
        """Records the arrival; returns whether its step had been cancelled."""
        message, worker = arrival.message, arrival.worker
        self._settle(worker, message.version)
        self._arrived((worker, message.step, message.version, arrival.posted_seconds, arrival.seconds))
        if message.version < self._reading[worker]:
            return True
        self._waiting[worker] = Waiting(message.step, arrival.seconds)
        return False

    def _apply(self, begin: float) -> None:
        self._parameters.update()
        version = self._parameters.version
        self._updated((version, begin, time.monotonic()))
        for worker, step, read_version in self._contributors:
            self._applied((version, worker, step, read_version))
            self._counts["applied"] += 1
            self._counts["staleness"] += version - 1 - read_version
        self._contributors.clear()
        self._task.progress(version)

    def _answer(self, answers: Iterable[tuple[int, int]], asker: int, step: int) -> None:
        for worker, version in answers:
            if version != self._parameters.version:
                raise wrong_answer(asker, step, worker, version, self._parameters.version)
            asked = math.nan
            if worker in self._waiting:
                asked = self._waiting[worker].since_seconds
            elif self._task.cancels:
                self._cancelled((worker, self._reading[worker]))
            else:
                raise unasked_answer(asker, step, worker)
            self._answered((worker, version, asked, time.monotonic()))
            self._send(worker)

    def _send(self, worker: int) -> None:
        answer = self._parameters.lend()
        self._on_the_way[worker].append(self._senders.send(worker, answer))
        self._reading[worker] = answer.version
        self._waiting.pop(worker, None)
        if answer.stop:
            self._stopped.add(worker)

    def _settle(self, worker: int, version: int) -> None:
        """Takes back the buffers of answers up to `version`, since the worker has read that version."""
        answers = self._on_the_way[worker]
        while answers and answers[0].message.version <= version:
            answer = answers.popleft()
            answer.wait()
            self._parameters.take_back(answer.message)

    def _check_somebody_comes(self) -> None:
        """Raises InputError where every worker waits for an answer or has done its steps, so that no push can come."""
        if not self.over and self._waiting and len(self._waiting.keys() | self._through) == self._task.workers:
            worker, waiting = next(iter(self._waiting.items()))
            raise no_answer(worker, waiting.step, self._parameters.version, self._task.updates)

    def _expected(self) -> str:
        missing = [str(worker) for worker in range(self._task.workers) if worker not in self._waiting]
        return f"{'workers' if len(missing) > 1 else 'worker'} {', '.join(missing)}"

    def _finish(self) -> None:
        """Stops every worker, and waits for the goodbyes."""
        self._parameters.end()
        for worker in sorted(self._waiting.keys() | self._through - self._stopped):
            self._send(worker)
        here = set(range(self._task.workers))
        while here:
            self._slot.doing(f"recv of the end of workers {sorted(here)}", waiting=True)
            arrival = self._inbox.get()
            worker, message = arrival.worker, arrival.message
            if message.kind is MessageKind.GOODBYE:
                self._settle(worker, self._parameters.version)
                if message.expected_checksum != self._parameters.newest.checksum():
                    raise DisagreementError(f"worker {worker} ends with other parameters than the server")
                here.discard(worker)
            elif message.kind is MessageKind.THROUGH or not self._record(arrival):
                self._send(worker)
            self._inbox.free(worker)
        self._senders.close()
