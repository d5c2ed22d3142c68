"""Conversations between a server and its workers: a run of the testbed in which trainings are held, and its judge.

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
from distsim.grading.lab import TASKS
from distsim.grading.served_training import SERVER, STOP, WORKERS, Array, Fault, Push, ServedTraining, same

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

FAST, SLOW = {"bandwidth": "10 Gbit/s", "latency": "1 us"}, {"bandwidth": "100 Mbit/s", "latency": "20 us"}
LEAST_SECONDS = 0.2e-3  # that anything may take: a loop that asks whether a message has come takes a while
SLOTS_PER_BOUND = 2.5  # length of a slot, as a multiple of the longest time that anything may take
EARLY_SECONDS = 1e-9
OVER, CAME = "over", "came"  # what the driver notes
STUCK = ("deadlock", "which had room for")  # of failures that follow from something earlier


@dataclass(frozen=True)
class Conversation:
    """Trainings of as many workers, one after the other, in one run of the testbed. links: of its cluster.

    students: the sides that are the student's. in_turn: whether the order of the answers in one slot is judged.
    books: whether the list that the server returns is judged; any_order: whether the order within an update is free.
    vectors: whether the numbers in messages, and the parameters at the end, are judged.
    """

    trainings: Sequence[ServedTraining]
    students: Sequence[str] = (SERVER,)
    links: Mapping[str, str] = field(default_factory=lambda: FAST)
    in_turn: bool = False
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
        stuck = TASKS not in failure or any(sign in failure for sign in STUCK)  # what came before says more
        if failure and not stuck:
            return self._failed(run, expected)
        for number, training in enumerate(self.trainings):
            faults = sorted(_Judge(self, run, number).faults(), key=lambda fault: fault.seconds)
            if faults:
                return faults[0].finding(training.name)
        if failure:
            return self._failed(run, expected)
        unwaited = [one for one in run.log.unwaited if one.rank in self.student_ranks()]
        if unwaited:
            return Finding.of(observed=str(unwaited[0]), expected="a wait for each isend and irecv", passed=False)
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
        """Whether a moment belongs to this training.

        The slot before a training is empty. Its middle is the border, since a rank that waits for the begin may begin a
        rounding error earlier.
        """
        last, early = self._number == len(self._of.trainings) - 1, self._of.slot_seconds / 2
        return self._begin - early <= seconds and (last or seconds < self._end - early)

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
        if SERVER in self._of.students and self._of.in_turn:
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
        """Those who are answered in one slot are answered in turn, before the end."""
        for slot in sorted({push.answered for push in self._training.pushes if push.head != STOP}):
            sent = []
            for push in (push for push in self._training.answers() if push.answered == slot):
                found = self._messages(self._server, push.worker)
                sent += [found[push.number].posted_seconds] if push.number < len(found) else []
            if sent != sorted(sent):
                workers = [push.worker for push in self._training.answers() if push.answered == slot]
                observed = f"workers {workers} are not answered in the order of {self._training.order}"
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
