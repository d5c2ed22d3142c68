"""The parameter server: receive -> decide -> apply -> answer, until the policy's last update.

receive: the next push, by the scenario's `receive`. decide: the policy's own rule says what becomes of it; the
simulator asks the very same object. apply: the gradients of an update change the parameters, for real.
answer: who is to go on is sent the parameters of the newest version, while other messages come and go.

After the last update nothing counts any more: every worker is sent a stop with the last parameters, whoever still
computes when its push has come, and the server leaves when all have said goodbye.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from distsim.policies import Rule
from distsim.runtime.inbox import Arrival, inbox
from distsim.runtime.messages import Kind, Message, pattern
from distsim.runtime.recorder import Recorder
from distsim.runtime.status import StatusSlot

LEARNING_RATE = 2.0**-10


class DisagreementError(RuntimeError):
    """A worker's parameters, or the server's own, are not what they must be at the end of a run."""


class RuleError(RuntimeError):
    """A rule has decided something that no server can do."""


@dataclass(frozen=True)
class Duty:
    """What the server is to do: `updates` updates as `rule` decides; cancels: it may answer who has not pushed."""

    rule: Rule
    workers: int
    updates: int
    floats: int
    receive: str
    cancels: bool


class Answer:
    """A message of parameters on its way to one worker."""

    def __init__(self, worker: int, message: Message) -> None:
        self.message = message
        work = dist.isend(message.tensor, dst=worker)
        assert work is not None, "this rank belongs to the group"
        self.work = work


class Server:
    """One server's story."""

    def __init__(self, duty: Duty, recorder: Recorder, slot: StatusSlot, done_before: int) -> None:
        self._duty = duty
        self._slot = slot
        self._done_before = done_before
        self._inbox = inbox(duty.receive, duty.workers, duty.floats)
        self._arrived = recorder.table("arrivals")
        self._answered = recorder.table("answers")
        self._updated = recorder.table("updates")
        self._applied = recorder.table("applied")
        self._dropped = recorder.table("dropped")
        self._cancelled = recorder.table("cancelled")
        self._facts = recorder.facts

        self._version = 0
        self._parameters = self._stamped(Message(duty.floats))
        self._unused = [Message(duty.floats), Message(duty.floats)]
        self._pending = torch.zeros(duty.floats)
        self._contributors: list[tuple[int, int, int]] = []  # worker, step, read_version of what is pending
        self._reading = [0] * duty.workers  # the version each worker was last sent
        self._waiting: dict[int, float] = {}  # workers whose push has come: since when
        self._on_the_way: list[deque[Answer]] = [deque() for _ in range(duty.workers)]
        self._applied_count = [0.0] * duty.workers  # sum over updates of 1 / gradients in the update
        self._received_bytes = 0

    def run(self) -> None:
        """All updates, and the end."""
        while self._version < self._duty.updates:
            arrival = self._receive()
            self._decide(arrival)
        self._finish()
        self._verify()
        self._facts |= {"num_bytes": self._parameters.num_bytes, "received_bytes": self._received_bytes}

    def _receive(self) -> Arrival:
        self._slot.doing(f"recv from {self._expected()}", waiting=True)
        arrival = self._inbox.get()
        self._slot.doing(f"work on the message of worker {arrival.worker}")
        if arrival.message.kind is Kind.PUSH:
            self._received_bytes += arrival.message.carried_bytes
            self._settle(arrival.worker, arrival.message.version)
        return arrival

    def _decide(self, arrival: Arrival) -> None:
        worker, message, now = arrival.worker, arrival.message, arrival.seconds
        step, read_version = message.step, message.version
        if self._note(arrival):
            self._inbox.free(worker)
            return
        decision = self._duty.rule.arrived(worker, step, read_version)
        begin = now
        if decision.applied:
            begin = time.monotonic()
            self._add(message)
            self._contributors.append((worker, step, read_version))
        else:
            self._dropped((worker, step, read_version))
        self._inbox.free(worker)
        if decision.version is not None:
            self._apply(decision.version, begin)
        self._answer(decision.answers)

    def _note(self, arrival: Arrival) -> bool:
        """Writes the arrival down; whether its step has been cancelled before, so that nobody asks for it."""
        message, worker = arrival.message, arrival.worker
        cancelled = message.version < self._reading[worker]
        self._arrived((worker, message.step, message.version, arrival.posted_seconds, arrival.seconds))
        if not cancelled:
            self._waiting[worker] = arrival.seconds
        return cancelled

    def _add(self, message: Message) -> None:
        if self._contributors:
            self._pending.add_(message.payload)
        else:
            self._pending.copy_(message.payload)

    def _apply(self, version: int, begin: float) -> None:
        if version != self._version + 1:
            raise RuleError(f"the rule made version {version} of the parameters, but {self._version + 1} comes next")
        if not self._contributors:
            raise RuleError(f"the rule made version {version} of the parameters without a gradient")
        share = 1 / len(self._contributors)
        fresh = self._unused.pop() if self._unused else Message(self._duty.floats)
        torch.add(self._parameters.payload, self._pending, alpha=-LEARNING_RATE * share, out=fresh.payload)
        old = self._parameters
        self._version, self._parameters = version, fresh
        self._stamped(fresh)
        self._retire(old)
        self._updated((version, begin, time.monotonic()))
        for worker, step, read_version in self._contributors:
            self._applied((version, worker, step, read_version))
            self._applied_count[worker] += share
        self._contributors.clear()
        self._slot.done(self._done_before + version)

    def _stamped(self, message: Message) -> Message:
        message.write(Kind.ANSWER, version=self._version, stop=self._version == self._duty.updates)
        return message

    def _answer(self, answers: Iterable[tuple[int, int]]) -> None:
        for worker, version in answers:
            if version != self._version:
                raise RuleError(f"the rule answers with version {version}, but the server keeps {self._version} alone")
            asked = self._waiting.get(worker, math.nan)
            if worker not in self._waiting:
                if not self._duty.cancels:
                    raise RuleError(f"the rule answers worker {worker}, which waits for no answer")
                self._cancelled((worker, self._reading[worker]))
            self._answered((worker, version, asked, time.monotonic()))
            self._send(worker)

    def _send(self, worker: int) -> None:
        self._on_the_way[worker].append(Answer(worker, self._parameters))
        self._reading[worker] = self._version
        self._waiting.pop(worker, None)

    def _settle(self, worker: int, version: int) -> None:
        """The worker has read `version`, so that answer and those before it have gone through."""
        answers = self._on_the_way[worker]
        while answers and answers[0].message.version <= version:
            answer = answers.popleft()
            answer.work.wait()
            self._retire(answer.message)

    def _retire(self, message: Message) -> None:
        """Parameters that are neither the newest nor on their way to anybody leave their buffer to a later version."""
        travels = any(answer.message is message for answers in self._on_the_way for answer in answers)
        if message is not self._parameters and not travels and message not in self._unused:
            self._unused.append(message)

    def _expected(self) -> str:
        missing = [str(worker) for worker in range(self._duty.workers) if worker not in self._waiting]
        return f"{'workers' if len(missing) > 1 else 'worker'} {', '.join(missing)}"

    def _finish(self) -> None:
        """Stops every worker, and waits for their goodbyes."""
        for worker in sorted(self._waiting):
            self._send(worker)
        here = set(range(self._duty.workers))
        while here:
            self._slot.doing(f"recv of the end of workers {sorted(here)}", waiting=True)
            arrival = self._inbox.get()
            worker, message = arrival.worker, arrival.message
            if message.kind is Kind.GOODBYE:
                self._settle(worker, self._version)
                if message.expected_checksum != self._parameters.checksum():
                    raise DisagreementError(f"worker {worker} ends with other parameters than the server")
                here.discard(worker)
            else:
                self._received_bytes += message.carried_bytes
                self._settle(worker, message.version)
                if not self._note(arrival):
                    self._send(worker)
            self._inbox.free(worker)

    def _verify(self) -> None:
        """The parameters must be those that the recorded gradients lead to."""
        factor = sum((worker + 1) * count for worker, count in enumerate(self._applied_count))
        expected = pattern(self._duty.floats) * (-LEARNING_RATE * factor)
        # Each update may round once, by half a unit in the last place of float32.
        tolerance = 2.0**-23 * (2 + self._version)
        if not torch.allclose(self._parameters.payload, expected, rtol=tolerance, atol=0.0):
            raise DisagreementError("the server's parameters are not what the gradients it applied lead to")
