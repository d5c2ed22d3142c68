"""Trainings of workers that push gradients to a server, which answers: what must happen in them, and what went wrong.

A policy's rule decides about each push in turn, as in the simulator. So the rule says what a student's server must
answer, and when. A student's worker or server is judged alone: the other side speaks by a script of messages, which
`ServedTraining.sides` hands to `distsim.testbed.rank_conversation`. A script knows the protocol and no policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distsim.grading.check import Finding
from distsim.policies.rule import Rule

Array = np.ndarray[Any, Any]

STOP = -1.0
SERVER, WORKERS = "server", "workers"  # the sides
BOTH = (SERVER, WORKERS)


@dataclass
class Push:
    """One push and its answer. number: of this worker's pushes, from 0. read: the version that it is computed at.

    slot: in which it comes. answered: slot of its answer. head: of the answer, a version or STOP.
    """

    worker: int
    number: int
    read: int
    slot: int
    answered: int = -1
    head: float = math.nan


@dataclass(frozen=True)
class Fault:
    """Something that went wrong. seconds: of the training, where that is known; the earliest fault is told."""

    seconds: float
    where: str
    observed: str
    expected: str

    def finding(self, training: str) -> Finding:
        """The finding without points. training: its name."""
        where = f"{training}, {self.where}"
        return Finding.of(observed=self.observed, expected=self.expected, passed=False, where=where)


@dataclass(frozen=True)
class ServedTraining:
    """A training, and all that must happen in it.

    name: for a student. pushes: in the order in which they come. used: for each update, its pushes in that order.
    versions: the parameters of each version. base, decay, tick: of the workers' gradients, see `_gradient`.
    options: further arguments of the student's server. numbered: whether a push begins with its number, in place of
    the version that it is computed at. columns: the parameters are the middle column of so many.
    """

    name: str
    workers: int
    updates: int
    learning_rate: float
    pushes: Sequence[Push]
    used: Sequence[Sequence[Push]]
    room: Array
    base: Sequence[Array]
    decay: Array
    tick: Array
    options: Mapping[str, Any]
    numbered: bool
    versions: list[Array] = field(default_factory=list)

    @classmethod
    def drawn(
        cls,
        rng: np.random.Generator,
        name: str,
        rule: Rule,
        workers: int,
        updates: int,
        *,
        size: int,
        options: Mapping[str, Any],
        numbered: bool,
        columns: int = 1,
        slots: Sequence[Sequence[int]] = (),
    ) -> ServedTraining:
        """A training whose numbers and times are drawn. slots: of each worker, how long its first gradients take.

        The last of at least three parameters has no gradient, and is the number STOP. A single parameter has none from
        the last one of several workers.
        """
        pushes, used = _played(rule, workers, updates, _Slots(rng, workers, slots))
        most = 1 + max(push.number for push in pushes)
        learning_rate, room = float(rng.uniform(0.05, 0.4)), rng.normal(size=(size, columns))
        base = [rng.normal(size=(most, size)) for _ in range(workers)]
        decay, tick = rng.uniform(0.2, 1.0, size=(workers, size)), rng.normal(size=(workers, size))
        if size >= 3:
            room[-1] = STOP
            for gradients in (*base, decay, tick):
                gradients[:, -1] = 0.0
        if size == 1 and workers > 1:
            for gradients in (base[-1], decay[-1], tick[-1]):
                gradients[:] = 0.0
        training = cls(name, workers, updates, learning_rate, pushes, used, room, base, decay, tick, options, numbered)
        training._compute_versions()
        return training

    @property
    def size(self) -> int:
        """The length of the parameters."""
        return len(self.room)

    @property
    def message_bytes(self) -> int:
        """Of each message: a number, and a vector of the length of the parameters."""
        return 8 * (1 + self.size)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return 2 + max(push.slot for push in self.pushes)

    def of_worker(self, worker: int) -> list[Push]:
        """A worker's pushes, in order."""
        return [push for push in self.pushes if push.worker == worker]

    @property
    def order(self) -> str:
        """The order of answers in one slot, in words."""
        return "their ranks" if self.numbered else "their pushes"

    def answers(self) -> list[Push]:
        """The pushes in the order of their answers; those of one slot by rank where pushes are numbered."""
        return sorted(self.pushes, key=lambda push: (push.answered, push.worker if self.numbered else push.slot))

    def pushed(self, push: Push) -> Array:
        """The vector of a push."""
        return np.concatenate([[float(self._head(push))], self._gradient(push, self.versions[push.read])])

    def answer(self, push: Push) -> Array:
        """The vector that answers a push."""
        version = self.updates if push.head == STOP else int(push.head)
        return np.concatenate([[push.head], self.versions[version]])

    def _part_of_update(self, version: int, count: int) -> Array:
        """The parameters of a version, and the first `count` gradients of the update that follows it."""
        pushes = self.used[version]
        part = sum(self.pushed(push)[1:] for push in pushes[:count])
        return self.versions[version] - self.learning_rate * part / len(pushes)

    def end(self) -> Array:
        """The room of the parameters at the end: all but the middle column stays."""
        room = self.room.copy()
        room[:, room.shape[1] // 2] = self.versions[-1]
        return room

    def named(self, vector: Array) -> str:
        """What a vector is: the parameters of a version, or a gradient."""
        for number, version in enumerate(self.versions):
            if same(vector, version):
                return f"the parameters of version {number}"
            for count in range(1, len(self.used[number]) if number < self.updates else 1):
                if same(vector, self._part_of_update(number, count)):
                    return f"the parameters of version {number} and a part of the next update"
        for push in self.pushes:
            if same(vector, self.pushed(push)[1:]):
                return f"the gradient of worker {push.worker} at version {push.read}"
        return "numbers that are neither the parameters of a version nor such a gradient"

    def book(self) -> list[list[int]]:
        """What the server returns: for each update the workers; or, where pushes are numbered, worker and staleness."""
        if self.numbered:
            return [[push.worker, version - push.read] for version, (push,) in enumerate(self.used)]
        return [[push.worker for push in pushes] for pushes in self.used]

    def room_faults(self, rank: int, room: Any) -> Iterator[Fault]:
        """Faults of the room that a rank has at the end."""
        middle, where = self.room.shape[1] // 2, f"rank {rank}, at the end"
        if not same(room[:, middle], self.versions[-1]):
            expected = f"in the parameters given, in place: {self.named(self.versions[-1])}"
            yield Fault(math.inf, where, self.named(room[:, middle]), expected)
        elif not same(room, self.end()):
            yield Fault(math.inf, where, "numbers beside the parameters have changed", "only the parameters change")

    def book_faults(self, book: list[list[int]], *, any_order: bool = False) -> Iterator[Fault]:
        """Faults of the list that a server returns. any_order: whether the order within an update is free."""
        wanted, found = self.book(), book
        if any_order:
            wanted, found = [sorted(row) for row in wanted], [sorted(row) for row in found]
        if found != wanted:
            yield Fault(math.inf, "the list returned", str(found), str(wanted))

    def faults_in_any_order(self, results: Sequence[Any]) -> Iterator[Fault]:
        """Faults at the end of a run in which it was not known who comes first. results: by rank, the server's last.

        Where each update needs all workers, it does not matter who comes first.
        """
        if all(len(pushes) == self.workers for pushes in self.used):
            for rank, result in enumerate(results):
                yield from self.room_faults(rank, result["room"])
            yield from self.book_faults(results[-1]["book"], any_order=True)
            return
        for rank, result in enumerate(results):
            if not same(result["room"], results[-1]["room"]):
                yield Fault(math.inf, f"rank {rank}", "parameters that are not the server's", "all end alike")
        if len(results[-1]["book"]) != self.updates:
            observed = f"{len(results[-1]['book'])} updates"
            yield Fault(math.inf, "the list returned", observed, f"{self.updates} updates")

    def sides(self, students: Sequence[str], begin: float, slot: float) -> list[dict[str, Any]]:
        """What each rank gets for its turn: the student's function to call, or a script. begin, slot: in seconds."""
        serving = {"updates": self.updates, "learning_rate": self.learning_rate, **self.options}
        server: dict[str, Any] = {"serve": serving, "room": self.room}
        if SERVER not in students:
            server = {"script": self._script_of_server()}
        workers = [self._working(worker, begin, slot) for worker in range(self.workers)]
        if WORKERS not in students:
            workers = [{"script": self._script_of_worker(worker, begin, slot)} for worker in range(self.workers)]
        return [{"begin": begin, **side} for side in (*workers, server)]

    def _head(self, push: Push) -> int:
        return push.number if self.numbered else push.read

    def _gradient(self, push: Push, at: Array) -> Array:
        worker = push.worker
        gradient: Array = (
            self.base[worker][push.number] + self.decay[worker] * at + self._head(push) * self.tick[worker]
        )
        return gradient

    def _compute_versions(self) -> None:
        self.versions.append(self.room[:, self.room.shape[1] // 2].copy())
        for pushes in self.used:
            gradients = [self._gradient(push, self.versions[push.read]) for push in pushes]
            self.versions.append(self.versions[-1] - self.learning_rate * np.mean(gradients, axis=0))

    def _working(self, worker: int, begin: float, slot: float) -> dict[str, Any]:
        ends = [begin + push.slot * slot for push in self.of_worker(worker)]
        numbers = {"base": self.base[worker], "decay": self.decay[worker], "tick": self.tick[worker]}
        return {"work": {"ends": ends, **numbers}, "room": self.room}

    def _script_of_worker(self, worker: int, begin: float, slot: float) -> list[dict[str, Any]]:
        script: list[dict[str, Any]] = []
        for push in self.of_worker(worker):
            script.append({"at": begin + push.slot * slot, "send": self.pushed(push), "to": self.workers})
            script.append({"at": 0.0, "receive": 1 + self.size, "source": self.workers})
        return script

    def _script_of_server(self) -> list[dict[str, Any]]:
        lines = [
            (push.slot, 0, {"at": 0.0, "receive": 1 + self.size, "source": push.worker}) for push in self.pushes
        ] + [(push.answered, 1, {"at": 0.0, "send": self.answer(push), "to": push.worker}) for push in self.answers()]
        return [line for _, _, line in sorted(lines, key=lambda row: row[:2])]


class _Slots:
    """How many slots each gradient takes: what is given, and then drawn; now and then one takes very long."""

    def __init__(self, rng: np.random.Generator, workers: int, given: Sequence[Sequence[int]]) -> None:
        self._rng, self._workers, self._given = rng, workers, given

    def __call__(self, worker: int, number: int) -> int:
        if worker < len(self._given) and number < len(self._given[worker]):
            return self._given[worker][number]
        drawn = int(self._rng.integers(1, 2 * self._workers + 2))
        return drawn * (4 if self._rng.random() < 0.2 else 1)


def _played(rule: Rule, workers: int, updates: int, slots: _Slots) -> tuple[list[Push], list[list[Push]]]:
    """Asks the rule about each push in turn, until the last update is made and each worker is told to stop."""
    coming: dict[int, Push] = {}  # by slot

    def begin(worker: int, number: int, read: int, now: int) -> None:
        slot = now + slots(worker, number)
        while slot in coming:
            slot += 1
        coming[slot] = Push(worker, number, read, slot)

    def answer(push: Push, head: float, now: int) -> None:
        push.answered, push.head = now, head
        if head != STOP:
            begin(push.worker, push.number + 1, int(head), now)

    for worker in range(workers):
        begin(worker, 0, 0, 0)
    pushes: list[Push] = []
    used: list[list[Push]] = []
    gathered: list[Push] = []
    waiting: dict[int, Push] = {}
    while coming:
        push = coming.pop(min(coming))
        pushes.append(push)
        waiting[push.worker] = push
        if len(used) < updates:
            decision = rule.arrived(push.worker, push.number, push.read)
            gathered += [push] if decision.applied else []
            if decision.version is not None:
                used.append(gathered)
                gathered = []
            answers: Sequence[tuple[int, float]] = decision.answers
        if len(used) == updates:
            answers = [(worker, STOP) for worker in sorted(waiting)]
        for worker, head in answers:
            answer(waiting.pop(worker), head, push.slot)
    return pushes, used


def same(one: Any, other: Any) -> bool:
    """Whether two arrays have one shape and, but for rounding, the same numbers."""
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=1e-9))
