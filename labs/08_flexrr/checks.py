"""What lab 08 asks of tasks.py. A replay of the rules says what each worker must do, from when to when.

Server and workers are the student's, and in `every_piece_once` each side also talks to a script.

Every training is judged by all rules: which piece each worker does, when it begins and at which parameters, each piece
done once, two messages for each piece, the update of each step, and the list of the pieces that were handed over.

Pieces end at slots of virtual time. No two of them end in one slot, and a slot is far longer than all messages, so it
is certain which report comes first. Trainings are drawn from this space, and its corners are always among them:

    workers        1 to 7, so 2 to 8 ranks; nobody is slow, one worker is, or two are: always drawn ones
    steps, items   1 to 5 steps of 1 to 15 pieces, odd numbers too
    staleness      0 to 3
    group          no helper, one, some, all others
    threshold      1 to 4 pieces
    parameters     1 to 9 numbers; a vector of its own, or a column of a matrix
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

Array = NDArray[np.float64]
LINKS = {"bandwidth": "10 Gbit/s", "latency": "1 us"}
SLOT, LATE, EARLY = 1e-3, 0.2e-3, 1e-9  # seconds: of a slot, and how much later and earlier a piece may begin
PACE = 9  # slots of a piece, where nobody is slow
TRIES = 400  # to draw a training of a certain kind
NUMBER_BYTES, HEAD = 8, 3
CLOSE = 1e-9
PAUSE, ORDER, REPORT = "pause", "order", "report"
SCRIPTS = ("workers", "server")  # the side that recites what the replay says
STOP = -1.0
MOST_NUMBERS, MOST_COLUMNS = 9, 3
STUCK = ("deadlock", "which had room for")  # of failures that follow from something earlier

# Hints on faults that any training may show, also where its check asks for something else
LATE_ORDER = "The right piece, but late: does the server wait in recv for the next report, and decide at once?"
IDLE = "Is each free worker looked at after each report, also one that the bound held or that has no own piece left?"
OLD_OR_NEW = "Which parameters does an order bring: those of the moment when its step began, or newer ones?"
OTHER_UPDATE = "Whose gradients are summed for an update, and when is the update made?"
NOT_THEIRS = "Does the vector that the caller gave have all updates in the end, also the last one?"
OTHER_LIST = "What does serve return, in which order?"
NOT_ONCE = "When does a piece count as begun? Does a worker do the very piece that its order names?"
OTHER_MESSAGES = "Which messages does the protocol have, and is each isend and irecv waited for?"


@check(
    points=2,
    hint="Does the bound compare pieces or complete steps? May a worker begin that is exactly at the bound?",
    how="A worker's complete steps are done[worker] // items. Compare them with those of the slowest, min(done) // "
    "items, which may be this worker's own.",
)
def who_may_begin(testbed: Testbed) -> Finding:
    """Workers at the bound, one step within and one beyond; slowest ones of every rank, and half-done steps."""
    rng, cases = testbed.rng, []
    for bound in (0, 1, 2, 3) * 12:
        workers, items = int(rng.integers(1, 8)), int(rng.integers(1, 10))
        complete = rng.integers(0, bound + 3, workers)
        done = items * complete + rng.integers(0, items, workers)
        worker = int(rng.integers(workers))
        done[worker] = items * complete[worker]
        cases.append([worker, done.tolist(), items, bound])

    def right(worker: int, done: list[int], items: int, staleness: int) -> bool:
        return done[worker] // items - min(done) // items <= staleness

    return _decided(testbed, "may_begin", cases, [right(*case) for case in cases], "worker, done, items, staleness")


@check(
    points=3,
    hint="Whom may this helper help, which of them are far enough behind, and which one of these is furthest behind?",
    how="For each distance from 1 to group, (helper - distance) % workers may be helped. Keep those with left > 0 and "
    "done[helper] - done[worker] >= threshold; take the one with the least done, and of equal ones the lowest rank.",
)
def the_worker_that_is_helped(testbed: Testbed) -> Finding:
    """Groups of none to all others, workers just behind enough and just not, equals, and workers with nothing left."""
    rng, cases = testbed.rng, []
    for number in range(80):
        workers = int(rng.integers(1, 8))
        group, helper = (int(rng.integers(one)) for one in (workers, workers))
        threshold = int(rng.integers(1, 4))
        done = rng.integers(0, 4 + number % 3, workers)
        done[helper] += int(rng.integers(0, threshold + 2))
        left = rng.integers(0, 3, workers)
        cases.append([helper, done.tolist(), left.tolist(), group, threshold])
    right = [_helped(*case) for case in cases]
    return _decided(testbed, "whom_to_help", cases, right, "helper, done, left, group, threshold")


@check(
    points=4,
    hint="What has begun, by whom, and what is done? At which parameters is a piece of a helped worker computed?",
    how="Keep for each worker the next piece from the front and the number that is left; a helper's piece is front + "
    "left - 1. Keep a copy of the parameters for each step, and add a gradient to the sum of the step's own worker.",
)
def every_piece_once(testbed: Testbed) -> Finding:
    """One, two and four workers, of which a drawn one is slow; steps of one piece, and a single number."""
    rng = testbed.rng
    talks = [
        [
            _Training.drawn(rng, 4, steps=3, items=7, slow=[4], group=3, threshold=2, columns=3),
            _Training.drawn(rng, 4, steps=2, items=1, slow=[3], group=3, threshold=1),
        ],
        [
            _Training.drawn(rng, 2, steps=2, items=6, slow=[5], group=1, threshold=2, size=1),
            _Training.drawn(rng, 2, steps=2, items=5, slow=[3], group=1, threshold=1, staleness=1),
        ],
        [_Training.drawn(rng, 1, steps=2, items=3)],
    ]
    expected = "each piece done once, and each step's update"
    for script in SCRIPTS:
        lost = _first(testbed, talks[:1], expected, script)
        if lost.share < 1:
            return lost
    return _first(testbed, talks, expected)


@check(
    points=3,
    hint="How far behind must a worker be before it hands over a piece, also where a helper has nothing else to do?",
    how="A helper that is free waits where whom_to_help says None. Look at it again after the next report.",
)
def nobody_is_late(testbed: Testbed) -> Finding:
    """Workers that differ a little. Some have pieces left when others are free, but none is behind far enough."""
    rng = testbed.rng
    talks = [
        [
            _Training.such(rng, _nearly_late, 4, steps=2, items=6, group=3, threshold=3, spread=3),
            _Training.such(rng, _nearly_late, 4, steps=3, items=8, group=2, threshold=4, spread=3),
        ],
        [_Training.such(rng, _nearly_late, 3, steps=2, items=9, group=1, threshold=3, size=1, spread=3)],
    ]
    return _first(testbed, talks, "no piece handed over, since nobody is late")


@check(
    points=3,
    hint="Who is free after this report? First those with own pieces, then, by rank, those who may help.",
    how="After each report go through all free workers twice. At first each takes the next piece of its own step, or "
    "begins a step. Then each of the others takes the last piece that is left of the worker it helps. A piece counts "
    "as done for the worker whose step it is, not for the one that did it.",
)
def pieces_from_the_tail(testbed: Testbed) -> Finding:
    """Groups of none, one and some; up to three drawn workers are slow. Any report may call a helper that waits."""
    rng = testbed.rng
    talks = [
        [
            _Training.such(rng, _woken, 5, steps=3, items=9, slow=[5, 3, 4], group=2, threshold=4, staleness=1),
            _Training.drawn(rng, 5, steps=2, items=7, slow=[4], group=1, threshold=2, staleness=0),
            _Training.drawn(rng, 5, steps=3, items=5, slow=[4], group=2, threshold=1, staleness=1, columns=2),
            _Training.drawn(rng, 5, steps=2, items=4, slow=[3], group=0, threshold=1, staleness=0),
        ],
        [_Training.drawn(rng, 7, steps=2, items=9, slow=[4, 4, 4], group=3, threshold=2)],
    ]
    return _first(testbed, talks, "pieces of late workers done from the tail, by their helpers")


@check(
    points=3,
    hint="When may a worker with a complete step go on, and with what? What does a worker do that may not?",
    how="Make the update when the last piece of a step is done; then ask may_begin for each free worker with a "
    "complete step. Whoever is held by the bound helps, and begins its step when it is free again.",
)
def the_bound_is_kept(testbed: Testbed) -> Finding:
    """Bounds of 1, 2 and 3: workers run ahead to the bound, help there, and go on when the slowest has come."""
    rng = testbed.rng
    talks = [
        [
            _Training.such(rng, _at_once, 4, steps=4, items=4, slow=[4], group=3, threshold=2, staleness=1, columns=2),
            _Training.drawn(rng, 4, steps=4, items=3, slow=[5, 2], group=1, threshold=3, staleness=2),
            _Training.drawn(rng, 4, steps=3, items=5, slow=[3], group=0, threshold=1, staleness=1),
        ],
        [_Training.drawn(rng, 3, steps=5, items=2, slow=[6], group=2, threshold=1, staleness=3)],
    ]
    return _first(testbed, talks, "steps that begin as soon as the bound allows, and not before")


@check(
    points=1,
    hint="How long may a step take if a free helper always finds a piece until the late workers have begun their last?",
    how="Everybody works until no worker is threshold pieces behind with a piece left: at most shared_step_seconds. "
    "Then the slowest does at most threshold + 1 pieces. See that no free worker is forgotten after a report.",
)
def time_to_finish(testbed: Testbed) -> Finding:
    """One drawn worker is six times as slow. Only the time, and that each piece is done once, are judged here."""
    rng = testbed.rng
    for workers, staleness, threshold in ((3, 0, 1), (4, 1, 2)):
        slow = int(rng.integers(workers))
        seconds = rng.uniform(0.004, 0.005, workers)
        seconds[slow] *= 6
        case = _Training.drawn(
            rng, workers, steps=3, items=12 + int(rng.integers(4)), staleness=staleness, group=workers - 1,
            threshold=threshold,
        )  # fmt: skip
        run = _run(testbed, [case], seconds=seconds)
        about = f"{workers} workers, {case.items} pieces a step, worker {slow} is slow"
        if run.failure:
            return Finding.failed(run, "a training that ends in time")
        if fault := next(_not_once(run, 0, case), None):
            return fault.finding(about)
        shared = case.items * workers / float((1 / seconds).sum())
        alone = case.steps * case.items * float(seconds.max())
        most = case.steps * (shared + (threshold + 1) * float(seconds.max()) + case.items * workers * LATE / 10)
        assert most < 0.75 * alone
        if not run.seconds <= most:
            expected = f"at most {1e3 * most:.0f} ms; without helpers {1e3 * alone:.0f} ms"
            return _wrong(f"the training takes {1e3 * run.seconds:.0f} ms", expected, about)
    return _fine("a training that ends in time")


@check(
    points=1,
    hint="How many pieces a second do all workers do together?",
    how="A worker does 1 / seconds pieces a second. Divide the number of all pieces by the sum of these speeds.",
)
def prediction_of_a_shared_step(testbed: Testbed) -> Finding:
    """One worker, equal ones, and drawn ones."""
    rng = testbed.rng
    drawn = [[int(rng.integers(2, 30)), rng.uniform(0.1, 9.0, count).tolist()] for count in (1, 2, 3, 5, 6)]
    cases = [[7, [2.0]], [1, [0.5, 0.5]], [12, [0.005, 0.005, 0.02, 0.005]], *drawn]
    run = testbed.run("predict", arguments=[{"cases": cases}])
    if run.failure:
        return Finding.failed(run, "the seconds of a shared step")
    for (items, seconds), found in zip(cases, run.results[0]["seconds"], strict=True):
        right = items * len(seconds) / sum(1 / one for one in seconds)
        if not math.isclose(found, right, rel_tol=1e-6):
            told = ", ".join(f"{one:.3g}" for one in seconds)
            return _wrong(f"{found:.4g} s", f"{right:.4g} s", f"{items} pieces a worker, each {told} s")
    return _fine("the seconds of a shared step")


# The replay


class _Piece(NamedTuple):
    """What a worker does in slots `begin` to `end`: a piece of its own step or of another worker's."""

    worker: int
    step: int
    item: int
    begin: int
    end: int
    parameters: Array

    def named(self) -> str:
        return _named(self[:3])


@dataclass
class _Training:
    """A training, and what the rules make of it: who does what, and the end."""

    workers: int
    steps: int
    items: int
    staleness: int
    group: int
    threshold: int
    rate: float
    room: Array  # the parameters are its middle column
    decay: Array
    own: Array  # by rank, vectors that its gradients have in turn
    slots: Array  # by rank, how many slots its pieces take, in turn
    did: list[list[_Piece]] = field(default_factory=list)
    handed: list[list[int]] = field(default_factory=list)
    messages: list[tuple[str, int, Array]] = field(default_factory=list)  # orders and reports, with the worker's rank
    final: Array = field(default_factory=lambda: np.zeros(0))
    length: int = 0  # slots
    nearly: int = 0  # the most pieces that a worker with pieces left was behind a free helper, and handed none
    woken: int = 0  # times that the report of another one's piece, which completed no step, set a free helper going
    at_once: int = 0  # times that a worker of a higher rank began a step, and handed a piece over at once

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, workers: int, *, steps: int, items: int, slow: Sequence[int] = (),
        group: int = 0, threshold: int = 1, staleness: int = 0, size: int = 0, columns: int = 1,
        spread: int = 0,
    ) -> _Training:  # fmt: skip
        """slow: for each of the slow workers, which are drawn, by how much its pieces are longer.

        spread: by how many slots the other workers' pieces differ.
        """
        size = size or int(rng.integers(2, MOST_NUMBERS + 1))
        slots = PACE + rng.integers(-1, 2, (workers, 4 * items * steps))
        slots += rng.integers(-spread, spread + 1, (workers, 1))
        for rank, times in zip(rng.permutation(workers), slow, strict=False):
            slots[rank] *= times
        made = cls(
            workers, steps, items, staleness, group, threshold, float(rng.uniform(0.05, 0.2)),
            rng.normal(size=(size, columns)), rng.uniform(-0.3, 0.3, size), rng.normal(size=(workers, 5, size)), slots,
        )  # fmt: skip
        made._play()
        return made

    @classmethod
    def such(
        cls, rng: np.random.Generator, wish: Callable[[_Training], bool], workers: int, **options: Any
    ) -> _Training:
        """The first of those drawn for which the wish is true."""
        for _ in range(TRIES):
            made = cls.drawn(rng, workers, **options)
            if wish(made):
                return made
        raise AssertionError("no such training was drawn")

    @property
    def name(self) -> str:
        """For messages."""
        return (
            f"{self.workers} workers, {self.steps} steps of {self.items}, bound {self.staleness}, group {self.group}, "
            f"threshold {self.threshold}"
        )

    def _play(self) -> None:
        """Replays the rules."""
        workers = range(self.workers)
        self.did, self.handed, self.nearly, self.woken, self.at_once = [[] for _ in workers], [], 0, 0, 0
        self.messages = []
        parameters = self.room[:, self.room.shape[1] // 2].copy()
        done, steps = [0] * self.workers, [-1] * self.workers
        waiting: list[list[int]] = [[] for _ in workers]
        starts, sums = [parameters] * self.workers, [0.0 * parameters] * self.workers
        ending: dict[int, int] = {}  # by slot: the rank whose piece ends
        now, reporter, completed = 0, -1, True

        def begin(rank: int, worker: int, item: int) -> None:
            end = now + int(self.slots[rank][len(self.did[rank]) % self.slots.shape[1]])
            while end in ending:
                end += 1
            ending[end] = rank
            self.did[rank].append(_Piece(worker, steps[worker], item, now, end, starts[worker]))
            self.messages.append((ORDER, rank, np.array([worker, steps[worker], item, *starts[worker]])))

        def free() -> list[int]:
            return [rank for rank in workers if rank not in ending.values()]

        while True:
            for rank in free():
                complete = [pieces // self.items for pieces in done]
                last = steps[rank] + 1 == self.steps
                if complete[rank] == steps[rank] + 1 and not last and complete[rank] <= min(complete) + self.staleness:
                    steps[rank], waiting[rank] = steps[rank] + 1, list(range(self.items))
                    starts[rank], sums[rank] = parameters.copy(), 0.0 * parameters
                if waiting[rank]:
                    begin(rank, rank, waiting[rank].pop(0))
            for rank in free():
                left = [len(own) for own in waiting]
                late = _helped(rank, done, left, self.group, self.threshold)
                if late is not None:
                    self.woken += rank != reporter and not completed
                    self.at_once += rank < late and self.did[late][-1][1:4] == (steps[late], 0, now)
                    self.handed.append([rank, late, steps[late], waiting[late][-1]])
                    begin(rank, late, waiting[late].pop())
                elif (near := _helped(rank, done, left, self.group, 0)) is not None:
                    self.nearly = max(self.nearly, done[rank] - done[near])
            if not ending:
                break
            now = min(ending)
            rank = reporter = ending.pop(now)
            piece = self.did[rank][-1]
            gradient = self.own[rank][(len(self.did[rank]) - 1) % len(self.own[rank])] + self.decay * piece.parameters
            self.messages.append((REPORT, rank, gradient))
            sums[piece.worker] = sums[piece.worker] + gradient
            done[piece.worker] += 1
            completed = done[piece.worker] % self.items == 0
            if completed:
                parameters = parameters - self.rate * sums[piece.worker]
        self.messages += [(ORDER, rank, np.array([*[STOP] * HEAD, *parameters])) for rank in workers]
        self.final, self.length = parameters, now

    def argument(self, rank: int, begin: float, seconds: Sequence[float] | None, script: str) -> dict[str, Any]:
        """For the driver of one rank. seconds: of a piece, by rank; default: pieces end as in the replay."""
        if rank == self.workers and script == "server":
            size = self.room.shape[0]
            lines = [[kind, to, body if kind == ORDER else size] for kind, to, body in self.messages]
            return {"begin": begin, "lines": lines}
        if rank == self.workers:
            serve = {
                "room": self.room, "steps": self.steps, "items": self.items, "staleness": self.staleness,
                "group": self.group, "threshold": self.threshold, "learning_rate": self.rate,
            }  # fmt: skip
            return {"begin": begin, "serve": serve}
        ends = [begin + SLOT * piece.end for piece in self.did[rank]] if seconds is None else []
        later = (SLOT * self.slots[rank]).tolist() if seconds is None else [float(seconds[rank])]
        pieces = [list(piece[:3]) for piece in self.did[rank]] if script == "workers" else None
        work = {"own": self.own[rank], "decay": self.decay, "ends": ends, "seconds": later, "pieces": pieces}
        return {"begin": begin, "work": work}


def _woken(made: _Training) -> bool:
    """A report that completes no step sets another helper going."""
    return made.woken > 0


def _at_once(made: _Training) -> bool:
    """A worker begins a step, and a helper of a lower rank gets a piece of it at the same moment."""
    return made.at_once > 0


def _nearly_late(made: _Training) -> bool:
    """Nobody is late, but a worker with pieces left is only just not far enough behind."""
    return not made.handed and made.nearly == made.threshold - 1


def _helped(helper: int, done: Sequence[int], left: Sequence[int], group: int, threshold: int) -> int | None:
    """The worker that a free helper helps."""
    behind = [
        (done[worker] - done[helper], worker)
        for worker in range(len(done))
        if worker != helper and (helper - worker) % len(done) <= group and left[worker]
    ]
    furthest, worker = min(behind, default=(0, -1))
    return worker if worker >= 0 and -furthest >= threshold else None


# The judge


@dataclass(frozen=True)
class _Fault:
    """What is wrong, and since when. hint: where the check's own one may be about something else."""

    seconds: float
    observed: str
    expected: str
    hint: str = ""

    def finding(self, where: str) -> Finding:
        """The finding without points."""
        return _wrong(self.observed, self.expected, where, self.hint)


def _run(testbed: Testbed, cases: Sequence[_Training], seconds: Sequence[float] | None = None, script: str = "") -> Run:
    """The cases in one run of the testbed, one after the other. script: the side that is not the student's."""
    workers = cases[0].workers
    arguments = [
        {"cases": [case.argument(rank, at, seconds, script) for case, at in zip(cases, _begins(cases), strict=False)]}
        for rank in range(workers + 1)
    ]
    cluster = Cluster.model_validate({"workers": workers + 1, **LINKS})
    return testbed.run("train", arguments=arguments, cluster=cluster)


def _begins(cases: Sequence[_Training]) -> list[float]:
    """When each case begins, and when the last one is over, in seconds."""
    return [SLOT * float(slot) for slot in np.cumsum([0, *(2 + case.length for case in cases)])]


def _first(testbed: Testbed, talks: Sequence[Sequence[_Training]], expected: str, script: str = "") -> Finding:
    """The first fault of all runs."""
    for cases in talks:
        run = _run(testbed, cases, script=script)
        failure = run.failure or ""
        if failure and not any(sign in failure for sign in STUCK):
            return Finding.failed(run, expected)
        for number, case in enumerate(cases):
            faults = [*_not_as_replayed(run, number, cases), *_not_once(run, number, case, whole=not failure)]
            faults += _other_vectors(run, number, cases, script)
            if not failure and script != "server":
                faults += _results(run, number, case)
            if faults:
                return min(faults, key=lambda fault: fault.seconds).finding(case.name)
        if failure:
            return Finding.failed(run, expected)
        if fault := next(_other_messages(run, cases), None):
            return fault.finding(cases[0].name)
    return _fine(expected)


def _done(run: Run, number: int, rank: int) -> Iterator[tuple[tuple[int, int, int], float, Array]]:
    """What a rank does in a case: the piece, when it begins, and the parameters."""
    busy = [one for one in run.log.busy if one.rank == rank and one.kind != PAUSE]
    for one, parameters in zip(busy, run.log.notes_of(rank, "parameters"), strict=False):
        case, worker, step, item = map(int, one.kind.split())
        if case == number:
            yield (worker, step, item), one.start_seconds, parameters


def _not_as_replayed(run: Run, number: int, cases: Sequence[_Training]) -> Iterator[_Fault]:
    case, since = cases[number], _begins(cases)[number]
    did = [one for rank in range(case.workers) for one in _done(run, number, rank)]
    starts = {piece[:2]: parameters for piece, _, parameters in did if piece[2] == 0}
    for rank, wanted in enumerate(case.did):
        found = list(_done(run, number, rank))
        for (piece, at, parameters), right in zip(found, wanted, strict=False):
            due = since + SLOT * right.begin
            expected = f"{right.named()} at {1e3 * (due - since):.1f} ms"
            if piece != right[:3] or not due - EARLY <= at <= due + LATE:
                observed = f"worker {rank} begins {_named(piece)} at {1e3 * (at - since):.1f} ms"
                delayed = piece == right[:3] and due < at < due + SLOT  # a scheduled event is whole slots away
                yield _Fault(min(at, due), observed, expected, LATE_ORDER if delayed else "")
            elif not _same(parameters, right.parameters):
                observed = f"worker {rank} does {_named(piece)} at other parameters"
                if _same(starts.get(piece[:2], right.parameters), right.parameters):
                    yield _Fault(at, observed, "those of the step's begin", OLD_OR_NEW)
                else:
                    expected = "those after all updates so far, each by the sum of one step's gradients"
                    yield _Fault(at, observed, expected, OTHER_UPDATE)
        if len(found) > len(wanted):
            piece, at, _ = found[len(wanted)]
            observed = f"worker {rank} begins {_named(piece)} at {1e3 * (at - since):.1f} ms"
            yield _Fault(at, observed, "nothing that this worker does then")
        for right in wanted[len(found) :][:1]:
            due = since + SLOT * right.begin
            expected = f"{right.named()} at {1e3 * (due - since):.1f} ms"
            yield _Fault(due + LATE, f"worker {rank} does nothing", expected, IDLE)


def _not_once(run: Run, number: int, case: _Training, *, whole: bool = True) -> Iterator[_Fault]:
    """whole: whether the training has ended, so that what is missing is lost."""
    begun = [(at, piece, rank) for rank in range(case.workers) for piece, at, _ in _done(run, number, rank)]
    first: dict[tuple[int, int, int], int] = {}
    for at, piece, rank in sorted(begun):
        if piece in first:
            told = f"workers {first[piece]} and {rank} both do {_named(piece)}"
            yield _Fault(at, told, "each piece done once", NOT_ONCE)
        first.setdefault(piece, rank)
    for worker in range(case.workers) if whole else ():
        for step in range(case.steps):
            for item in range(case.items):
                if (worker, step, item) not in first:
                    told = f"nobody does {_named((worker, step, item))}"
                    yield _Fault(math.inf, told, "each piece done once", NOT_ONCE)


def _other_vectors(run: Run, number: int, cases: Sequence[_Training], script: str) -> Iterator[_Fault]:
    """Messages that a script has received, with other numbers than the protocol has."""
    server, skipped = cases[0].workers, cases[:number]
    kind = {"workers": ORDER, "server": REPORT}.get(script)
    for rank in range(server):
        listener = rank if kind == ORDER else server
        found = [one for one in run.log.notes if (one.rank, one.name) == (listener, f"{kind} {rank}")]
        before = sum((what, to) == (kind, rank) for case in skipped for what, to, _ in case.messages)
        wanted = [body for what, to, body in cases[number].messages if (what, to) == (kind, rank)]
        for note, body in zip(found[before:], wanted, strict=False):
            if not _same(note.value, body):
                head = ", ".join(f"{one:g}" for one in body[:HEAD])
                which = "final parameters" if body[0] == STOP else "parameters"
                expected = f"[{head}; {which} ...]" if kind == ORDER else "the gradient of the piece"
                told = f"[{', '.join(f'{one:.3g}' for one in note.value[: HEAD + 1])} ...]"
                yield _Fault(note.seconds, f"worker {rank}'s {kind} is {told}", expected)


def _results(run: Run, number: int, case: _Training) -> Iterator[_Fault]:
    found = run.results[case.workers]["cases"][number]
    middle = case.room.shape[1] // 2
    room = case.room.copy()
    room[:, middle] = case.final
    if not _same(found["room"], room):
        expected = "one update for each step: the sum of its gradients"
        yield _Fault(math.inf, "other parameters at the end", expected, NOT_THEIRS)
    if found["handed"] != case.handed:
        told = f"a list of {len(found['handed'])} pieces: {found['handed'][:2]} ..."
        yield _Fault(math.inf, told, f"{len(case.handed)} pieces handed over: {case.handed[:2]} ...", OTHER_LIST)


def _other_messages(run: Run, cases: Sequence[_Training]) -> Iterator[_Fault]:
    """Messages that the protocol does not have, collectives, and operations that nobody waits for."""
    due: Counter[tuple[int, int, int]] = Counter()
    for case in cases:
        size = case.room.shape[0]
        for rank, pieces in enumerate(case.did):
            due[case.workers, rank, NUMBER_BYTES * (HEAD + size)] += len(pieces) + 1
            due[rank, case.workers, NUMBER_BYTES * size] += len(pieces)
    seen = Counter((m.source, m.target, m.num_bytes) for m in run.log.messages)
    rule = "an order and a report for each piece, and one STOP for each worker"
    for source, target, size in sorted({**seen, **due}):
        if seen[source, target, size] != due[source, target, size]:
            told = f"from rank {source} to rank {target}: {seen[source, target, size]} messages of {size} bytes"
            yield _Fault(math.inf, told, f"{due[source, target, size]}: {rule}", OTHER_MESSAGES)
    for one in run.log.collectives:
        yield _Fault(math.inf, f"a {one.kind}", rule, OTHER_MESSAGES)
    for unwaited in run.log.unwaited:
        yield _Fault(math.inf, str(unwaited), "a wait for each isend and irecv", OTHER_MESSAGES)


def _decided(testbed: Testbed, name: str, cases: list[list[Any]], right: Sequence[Any], about: str) -> Finding:
    """Whether a function of the student says the right thing in each case. about: the names of its arguments."""
    run = testbed.run("decide", arguments=[{"name": name, "cases": cases}])
    if run.failure:
        return Finding.failed(run, "the right one of each case")
    for case, found, wanted in zip(cases, run.results[0]["found"], right, strict=True):
        if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
            return _wrong(str(found), str(wanted), f"{about}: {', '.join(map(str, case))}")
    return _fine("the right one of each case")


def _named(piece: Sequence[Any]) -> str:
    worker, step, item = piece
    return f"piece {item} of step {step} of worker {worker}"


def _same(one: Any, other: Any) -> bool:
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=CLOSE, atol=CLOSE))


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong(observed: str, expected: str, where: str, hint: str = "") -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where, hint=hint)
