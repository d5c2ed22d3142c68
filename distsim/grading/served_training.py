"""Trainings of workers that push gradients to a server, which answers: what must happen in them, and what went wrong.

A policy's rule decides about each push in turn, as in the simulator. So the rule says what a student's server must
answer, and when. A student's worker or server is judged alone: the other side speaks by a script of messages, which
`ServedTraining.sides` hands to the driver `converse` of the lab's ranks.py. A script knows the protocol and no policy.

Events lie in slots of virtual time. No two pushes come in one slot, and a slot is far longer than the messages of all
workers, so it is certain who comes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.cluster import Cluster
from distsim.grading.check import Finding
from distsim.policies.rule import Rule

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

Array = np.ndarray[Any, Any]

STOP = -1.0
FAST, SLOW = {"bandwidth": "10 Gbit/s", "latency": "1 us"}, {"bandwidth": "100 Mbit/s", "latency": "20 us"}
LEAST_SECONDS = 0.2e-3  # that anything may take: a loop that asks whether a message has come takes a while
SLOTS_PER_BOUND = 2.5  # length of a slot, as a multiple of the longest time that anything may take
EARLY_SECONDS = 1e-9
STUDENT_FILE, OVER, CAME = "tasks.py", "over", "came"  # the last two: what the driver notes
STUCK = ("deadlock", "which had room for")  # of failures that follow from something earlier
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
        """A training whose numbers and times are drawn. slots: of each worker, how long its first gradients take."""
        pushes, used = _played(rule, workers, updates, _Slots(rng, workers, slots))
        most = 1 + max(push.number for push in pushes)
        training = cls(
            name, workers, updates, float(rng.uniform(0.05, 0.4)), pushes, used, rng.normal(size=(size, columns)),
            [rng.normal(size=(most, size)) for _ in range(workers)], rng.uniform(0.2, 1.0, size=(workers, size)),
            rng.normal(size=(workers, size)), options, numbered,
        )  # fmt: skip
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

    def answers(self) -> list[Push]:
        """The pushes in the order of their answers; those of one slot by worker."""
        return sorted(self.pushes, key=lambda push: (push.answered, push.worker))

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
        """What `converse` gets on each rank: the student's function to call, or a script. begin, slot: in seconds."""
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


@dataclass(frozen=True)
class Conversation:
    """Trainings of as many workers, one after the other, in one run of the testbed. links: of its cluster.

    students: the sides that are the student's. by_rank: whether those answered in one slot are answered by rank.
    books: whether the list that the server returns is judged; any_order: whether the order within an update is free.
    vectors: whether the numbers in messages, and the parameters at the end, are judged.
    """

    trainings: Sequence[ServedTraining]
    students: Sequence[str] = (SERVER,)
    links: Mapping[str, str] = field(default_factory=lambda: FAST)
    by_rank: bool = False
    books: bool = True
    any_order: bool = False
    vectors: bool = True

    @property
    def workers(self) -> int:
        """Without the server."""
        return self.trainings[0].workers

    @property
    def cluster(self) -> Cluster:
        """The links between the workers and the server."""
        return Cluster.model_validate({"workers": self.workers + 1, **self.links})

    @property
    def bound_seconds(self) -> float:
        """The longest time that anything may take: all workers' messages, one after the other, there and back."""
        cluster = self.cluster
        message = cluster.latency_seconds + max(
            training.message_bytes / cluster.bandwidth_bytes_per_second for training in self.trainings
        )
        return LEAST_SECONDS + 4 * self.workers * message

    @property
    def slot_seconds(self) -> float:
        """The length of a slot."""
        return SLOTS_PER_BOUND * self.bound_seconds

    def begins(self) -> list[float]:
        """When each training begins, and when the last one is over, in seconds."""
        lengths = [(2 + training.slots) * self.slot_seconds for training in self.trainings]
        return [float(begin) for begin in np.cumsum([0.0, *lengths])]

    def held(self, testbed: Testbed, backend: str = "testbed") -> Run:
        """The run."""
        sides = [
            training.sides(self.students, begin, self.slot_seconds)
            for training, begin in zip(self.trainings, self.begins(), strict=False)
        ]
        arguments = [{"turns": list(turns)} for turns in zip(*sides, strict=True)]
        return testbed.run("converse", arguments=arguments, cluster=self.cluster, backend=backend)

    def finding(self, testbed: Testbed, expected: str) -> Finding:
        """Holds the conversation, and judges it."""
        return self.judged(self.held(testbed), expected)

    def on_gloo(self, testbed: Testbed, expected: str) -> Finding:
        """Holds it over gloo, where it is not known who comes first: all must end alike, after all updates."""
        run = self.held(testbed, backend="gloo")
        if run.failure:
            return self._failed(run, expected)
        for number, training in enumerate(self.trainings):
            for fault in training.faults_in_any_order([result["turns"][number] for result in run.results]):
                return fault.finding(f"{training.name}, on gloo")
        return Finding.of(observed=expected, expected=expected, passed=True)

    def judged(self, run: Run, expected: str) -> Finding:
        """The finding of the run: the first fault, or none. expected: what the check is about, in words.

        Every run of a lab is judged here, so the lab's rules hold in all of them.
        """
        failure = run.failure or ""
        stuck = STUDENT_FILE not in failure or any(sign in failure for sign in STUCK)  # what came before says more
        if failure and not stuck:
            return self._failed(run, expected)
        for number, training in enumerate(self.trainings):
            faults = sorted(_Judge(self, run, number).faults(), key=lambda fault: fault.seconds)
            if faults:
                return faults[0].finding(training.name)
        if failure:
            return self._failed(run, expected)
        return Finding.of(observed=expected, expected=expected, passed=True)

    def student_ranks(self) -> list[int]:
        """The ranks that call the student's functions."""
        workers = list(range(self.workers)) if WORKERS in self.students else []
        return [*workers, self.workers] if SERVER in self.students else workers

    def _failed(self, run: Run, expected: str) -> Finding:
        """A finding that tells why a run failed: of a deadlock, what the student's ranks wait for."""
        ranks = [rank for rank in self.student_ranks() if run.failures[rank] is not None]
        first = ranks[0] if ranks and "deadlock" in str(run.failure) else run.first
        over = len(run.log.notes_of(first, OVER)) if first is not None else 0
        observed = run.failure if first is None else f"rank {first}: {run.failures[first]}"
        where = self.trainings[min(over, len(self.trainings) - 1)].name
        return Finding.of(observed=observed, expected=expected, passed=False, where=where)


class _Judge:
    """Looks at one training of a run. What is missing is a fault if the student's functions have returned."""

    def __init__(self, conversation: Conversation, run: Run, number: int) -> None:
        self._of, self._run, self._number = conversation, run, number
        notes = [run.log.notes_of(rank, OVER) for rank in conversation.student_ranks()]
        self._whole = not run.failure or all(number in over for over in notes)
        self._training = conversation.trainings[number]
        self._begin, self._end = conversation.begins()[number : number + 2]
        self._server = self._training.workers

    def faults(self) -> Iterator[Fault]:
        """All that went wrong, in any order."""
        yield from self._strange_messages()
        yield from self._answers()
        yield from self._pushes()
        if WORKERS in self._of.students:
            yield from self._gradients()
        if not self._run.failure:
            yield from self._results()

    def _seconds(self, slot: int) -> float:
        return self._begin + slot * self._of.slot_seconds

    def _here(self, seconds: float) -> bool:
        last = self._number == len(self._of.trainings) - 1
        return self._begin <= seconds and (last or seconds < self._end)

    def _at(self, seconds: float) -> str:
        return f"{1e3 * (seconds - self._begin):.2f} ms"

    def _messages(self, source: int, target: int) -> list[Any]:
        found = [m for m in self._run.log.messages if (m.source, m.target) == (source, target)]
        return sorted((m for m in found if self._here(m.posted_seconds)), key=lambda m: m.posted_seconds)

    def _strange_messages(self) -> Iterator[Fault]:
        size = self._training.message_bytes
        rule = f"messages of {size} bytes between a worker and the server, and nothing else"
        for one in self._run.log.collectives:
            if any(self._here(seconds) for seconds in one.posted_seconds):
                yield Fault(min(one.posted_seconds), f"ranks {list(one.ranks)}", f"a {one.kind}", rule)
        for m in self._run.log.messages:
            odd = m.num_bytes != size or (m.source == self._server) == (m.target == self._server)
            if odd and self._here(m.posted_seconds):
                observed = f"a message of {m.num_bytes} bytes from rank {m.source} to rank {m.target}"
                yield Fault(m.posted_seconds, f"at {self._at(m.posted_seconds)}", observed, rule)

    def _counted(self, found: Sequence[Any], wanted: Sequence[Push], what: str, worker: int) -> Iterator[Fault]:
        """Faults of the number of a worker's pushes or answers."""
        where, expected = f"worker {worker}", f"{what}: {len(wanted)}, one for each gradient and none after STOP"
        if len(found) > len(wanted):
            late = found[len(wanted)].posted_seconds
            yield Fault(late, where, f"{what}: one more, at {self._at(late)}", expected)
        elif self._whole and len(found) < len(wanted):
            yield Fault(math.inf, where, f"{what}: {len(found)}", expected)

    def _answers(self) -> Iterator[Fault]:
        for worker in range(self._training.workers):
            wanted = self._training.of_worker(worker)
            found = self._messages(self._server, worker)
            yield from self._counted(found, wanted, "answers", worker)
            if SERVER in self._of.students:
                yield from self._timed(found, wanted, worker)
            if WORKERS not in self._of.students:
                vectors = [self._training.answer(push) for push in wanted]
                yield from self._told(worker, self._server, vectors, [push.answered for push in wanted], "answer to")
        if SERVER in self._of.students and self._of.by_rank:
            yield from self._turns()

    def _timed(self, found: Sequence[Any], wanted: Sequence[Push], worker: int) -> Iterator[Fault]:
        bound = self._of.bound_seconds
        for push, m in zip(wanted, found, strict=False):
            due = self._seconds(push.answered)
            if not (due - EARLY_SECONDS <= m.posted_seconds and m.ended_seconds <= due + bound):
                observed = f"its push {push.number}, of {self._at(self._seconds(push.slot))}, is answered at "
                expected = f"an answer at {self._at(due)}, {1e3 * bound:.2g} ms more or less"
                yield Fault(m.ended_seconds, f"worker {worker}", observed + self._at(m.ended_seconds), expected)

    def _turns(self) -> Iterator[Fault]:
        """Those who are answered in one slot are answered by rank, before the end."""
        for slot in sorted({push.answered for push in self._training.pushes if push.head != STOP}):
            sent = []
            for push in (push for push in self._training.answers() if push.answered == slot):
                found = self._messages(self._server, push.worker)
                sent += [found[push.number].posted_seconds] if push.number < len(found) else []
            if sent != sorted(sent):
                workers = [push.worker for push in self._training.answers() if push.answered == slot]
                observed = f"workers {workers} are not answered in the order of their ranks"
                yield Fault(max(sent), f"at {self._at(self._seconds(slot))}", observed, f"answers to {workers} in turn")

    def _pushes(self) -> Iterator[Fault]:
        bound = self._of.bound_seconds
        for worker in range(self._training.workers):
            wanted = self._training.of_worker(worker)
            found = self._messages(worker, self._server)
            if WORKERS in self._of.students:
                yield from self._counted(found, wanted, "pushes", worker)
                for push, m in zip(wanted, found, strict=False):
                    due = self._seconds(push.slot)
                    if not due - EARLY_SECONDS <= m.posted_seconds <= due + bound:
                        expected = f"its push {push.number} at {self._at(due)}, when its gradient is there"
                        observed = f"a push at {self._at(m.posted_seconds)}"
                        yield Fault(m.posted_seconds, f"worker {worker}", observed, expected)
                if SERVER not in self._of.students:
                    vectors = [self._training.pushed(push) for push in wanted]
                    slots = [push.slot for push in wanted]
                    yield from self._told(self._server, worker, vectors, slots, "push")

    def _told(
        self, rank: int, source: int, wanted: Sequence[Array], slots: Sequence[int], what: str
    ) -> Iterator[Fault]:
        """Faults of the vectors that the script of `rank` has received from `source`."""
        if not self._of.vectors:
            return
        notes = [n for n in self._run.log.notes if (n.rank, n.name) == (rank, CAME) and self._here(n.seconds)]
        found = [note for note in notes if note.value["source"] == source]
        worker = min(rank, source)
        for number, (note, vector, slot) in enumerate(zip(found, wanted, slots, strict=False)):
            if reason := self._differs(note.value["vector"], vector):
                where = f"worker {worker}, {what} {'its push ' if what == 'answer to' else ''}{number}"
                expected = f"[{_head(float(vector[0]))}; {self._training.named(vector[1:])}]"
                yield Fault(max(note.seconds, self._seconds(slot)), where, reason, expected)

    def _differs(self, found: Array, wanted: Array) -> str:
        """What was received in place of the vector wanted; empty where that is what came."""
        if same(found, wanted):
            return ""
        if np.shape(found) != np.shape(wanted):
            return f"{np.size(found)} numbers"
        body = "the right numbers" if same(found[1:], wanted[1:]) else self._training.named(found[1:])
        return f"[{_head(float(found[0]))}; {body}]"

    def _gradients(self) -> Iterator[Fault]:
        """A worker begins to compute when its answer has come, and not after STOP."""
        for worker in range(self._training.workers):
            wanted = self._training.of_worker(worker)
            busy = [one for one in self._run.log.busy if (one.rank, one.kind) == (worker, "gradient")]
            found = [one for one in busy if self._here(one.start_seconds)]
            if len(found) > len(wanted):
                late = found[len(wanted)].start_seconds
                expected = f"gradients: {len(wanted)}, and none after STOP"
                yield Fault(late, f"worker {worker}", f"gradients: one more, at {self._at(late)}", expected)
            elif self._whole and len(found) < len(wanted):
                yield Fault(math.inf, f"worker {worker}", f"gradients: {len(found)}", f"gradients: {len(wanted)}")
            begins = [self._begin, *(m.ended_seconds for m in self._messages(self._server, worker))]
            for number, (one, since) in enumerate(zip(found, begins, strict=False)):
                if one.start_seconds > since + self._of.bound_seconds:
                    observed = f"gradient {number} begins at {self._at(one.start_seconds)}"
                    expected = f"gradient {number} begins when the parameters are there, at {self._at(since)}"
                    yield Fault(one.start_seconds, f"worker {worker}", observed, expected)

    def _results(self) -> Iterator[Fault]:
        training, results = self._training, [result["turns"][self._number] for result in self._run.results]
        for rank, result in enumerate(results):
            if "room" in result and self._of.vectors:
                yield from training.room_faults(rank, result["room"])
        if self._of.books and SERVER in self._of.students:
            yield from training.book_faults(results[-1]["book"], any_order=self._of.any_order)


def first_finding(findings: Iterator[Finding]) -> Finding:
    """The first finding that is not full, or else the last one."""
    for finding in findings:
        if finding.share < 1.0:
            return finding
    return finding


def _head(head: float) -> str:
    return "STOP" if head == STOP else f"{head:g}"


def same(one: Any, other: Any) -> bool:
    """Whether two arrays have one shape and, but for rounding, the same numbers."""
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-9, atol=1e-9))
