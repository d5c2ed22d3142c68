"""What lab 02 asks of tasks.py. Every rank's numbers are drawn anew for every call, and only that rank has them.

Half of the points are for the right tensors, in every world size, for several roots, with late ranks and on real gloo.
The other half is for how they travelled: which bytes from whom to whom, and in how much time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory import collectives as theory

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

Array = NDArray[np.float64]
Call = dict[str, Any]  # the arguments of one rank's call, or what it gave

WORLDS = (1, 2, 4, 7)
GLOO_WORLD = 3
SHAPE = (10, 50)
BYTES = 8 * 10 * 50
LINKS = {"bandwidth": "1 MB/s", "latency": "1 ms"}
BYTES_PER_SECOND, LATENCY_SECONDS = 1e6, 1e-3
SLOT_SECONDS = 1.0  # from one call to the next: each begins when all is quiet
LATE_SECONDS = 0.05  # at most, of a rank in the last two calls, which follow each other at once
WAIT = "wait"  # what the drivers call the time before and after a call
EXACT = 1e-9  # of seconds
random = np.random.default_rng()


@dataclass(frozen=True)
class Task:
    """What one function has to do.

    given: arguments of a call by rank, for so many ranks and a root. right: what each rank must have then. wasted: what
    is wrong with the bytes that ranks sent each other, shape (ranks, ranks), or "". seconds: that it may take.
    to_the_last_bit: whether results must not differ between ranks at all.
    """

    function: str
    given: Callable[[int, int], list[Call]]
    right: Callable[[list[Call], int], list[Call]]
    wasted: Callable[[NDArray[np.int64], int], str]
    seconds: Callable[[int], float]
    to_the_last_bit: bool = False


@check(points=2, hint="Begin to send and to receive, then wait for both: batch_isend_irecv, or isend before recv.")
def shift_without_deadlock(testbed: Testbed) -> Finding:
    """Ranks of a ring that all send first wait for ever, and an order of turns takes two or three messages' time."""

    def right(given: list[Call], _root: int) -> list[Call]:
        tensors = [call["tensor"] for call in given]
        return [{"result": tensors[rank - 1], "input": tensors[rank]} for rank in range(len(given))]

    def wasted(sent: NDArray[np.int64], _root: int) -> str:
        return _other_bytes(sent, {(rank, (rank + 1) % len(sent)): BYTES for rank in range(len(sent))})

    def seconds(world: int) -> float:
        return _seconds(theory.broadcast_seconds, BYTES, min(world, 2))

    return _judged(testbed, Task("shift", _own_tensors, right, wasted, seconds))


@check(points=2, hint="On the root: isend every piece to its rank, and wait for all of them in the end.")
def scatter_sends_each_its_piece(testbed: Testbed) -> Finding:
    """A list per root, which it alone has."""

    def given(world: int, root: int) -> list[Call]:
        pieces = [_tensor() for _ in range(world)]
        return [{"pieces": pieces if rank == root else None, "like": np.zeros(SHAPE)} for rank in range(world)]

    def right(given: list[Call], root: int) -> list[Call]:
        pieces = given[root]["pieces"]
        return [{"result": piece, "input": call["pieces"]} for piece, call in zip(pieces, given, strict=True)]

    def wasted(sent: NDArray[np.int64], root: int) -> str:
        return _other_bytes(sent, {(root, rank): BYTES for rank in range(len(sent))})

    def seconds(world: int) -> float:
        return _seconds(theory.scatter_seconds, world * BYTES, world)

    return _judged(testbed, Task("scatter", given, right, wasted, seconds))


@check(points=2, hint="On the root: irecv every piece into a tensor of its own, and wait for all of them in the end.")
def gather_to_the_root_alone(testbed: Testbed) -> Finding:
    """The last two calls have one root, and ranks are late: a piece of the second may come before one of the first."""

    def right(given: list[Call], root: int) -> list[Call]:
        tensors = [call["tensor"] for call in given]
        return [{"result": tensors if rank == root else None, "input": own} for rank, own in enumerate(tensors)]

    def wasted(sent: NDArray[np.int64], root: int) -> str:
        return _other_bytes(sent, {(rank, root): BYTES for rank in range(len(sent))})

    def seconds(world: int) -> float:
        return _seconds(theory.gather_seconds, world * BYTES, world)

    return _judged(testbed, Task("gather", _own_tensors, right, wasted, seconds))


@check(points=3, hint="Whoever has it passes it on: after each round twice as many ranks have it.")
def broadcast_by_doubling(testbed: Testbed) -> Finding:
    """With a message of 5 ms, a root that sends to six ranks itself takes 30 ms or so, and a tree 15 ms."""

    def right(given: list[Call], root: int) -> list[Call]:
        return [{"result": given[root]["tensor"]} for _ in given]

    def wasted(sent: NDArray[np.int64], _root: int) -> str:
        return _too_many("receives", sent.sum(axis=0), BYTES)

    def seconds(world: int) -> float:
        return _seconds(theory.broadcast_seconds, BYTES, world)

    return _judged(testbed, Task("broadcast", _own_tensors, right, wasted, seconds))


@check(points=3, hint="It is a broadcast backwards: in each round half of those left send what they have added up.")
def reduce_by_halving(testbed: Testbed) -> Finding:
    """Sums are compared up to the order of the additions."""

    def right(given: list[Call], root: int) -> list[Call]:
        total = _total(given)
        return [
            {"result": total if rank == root else None, "input": call["tensor"]} for rank, call in enumerate(given)
        ]

    def wasted(sent: NDArray[np.int64], _root: int) -> str:
        return _too_many("sends", sent.sum(axis=1), BYTES)

    def seconds(world: int) -> float:
        return _seconds(theory.reduce_seconds, BYTES, world)

    return _judged(testbed, Task("reduce", _own_tensors, right, wasted, seconds))


@check(points=2, hint="N - 1 shifts: each rank passes on the piece that came last.")
def all_gather_without_a_centre(testbed: Testbed) -> Finding:
    """Through one rank, all pieces would leave that rank N - 1 times."""

    def right(given: list[Call], _root: int) -> list[Call]:
        tensors = [call["tensor"] for call in given]
        return [{"result": tensors, "input": own} for own in tensors]

    def wasted(sent: NDArray[np.int64], _root: int) -> str:
        return _too_many("sends", sent.sum(axis=1), (len(sent) - 1) * BYTES)

    def seconds(world: int) -> float:
        return _seconds(theory.all_gather_seconds, world * BYTES, world)

    return _judged(testbed, Task("all_gather", _own_tensors, right, wasted, seconds))


@check(points=2, hint="A reduce to one rank, and a broadcast from there.")
def all_reduce_alike_to_the_last_bit(testbed: Testbed) -> Finding:
    """Ranks that add in different orders end with models that drift apart."""

    def right(given: list[Call], _root: int) -> list[Call]:
        total = _total(given)
        return [{"result": total} for _ in given]

    def wasted(sent: NDArray[np.int64], _root: int) -> str:
        return _too_many("sends", sent.sum(axis=1), (len(sent) - 1).bit_length() * BYTES)

    def seconds(world: int) -> float:
        return 2 * _seconds(theory.broadcast_seconds, BYTES, world)

    return _judged(testbed, Task("all_reduce", _own_tensors, right, wasted, seconds, to_the_last_bit=True))


def _judged(testbed: Testbed, task: Task) -> Finding:
    """The first wrong tensor or forbidden collective costs all points, else the first waste costs half of them."""
    costs = []
    for world in WORLDS:
        trial = Trial(task, world)
        run = testbed.run(task.function, trial.arguments(), cluster=Cluster.model_validate({"workers": world, **LINKS}))
        if (wrong := trial.wrong(run)) is not None:
            return wrong
        costs.append(trial.cost(run))
    on_gloo = Trial(task, GLOO_WORLD)
    run = testbed.run(task.function, on_gloo.arguments(), backend="gloo")
    if (wrong := on_gloo.wrong(run, where=", on gloo")) is not None:
        return wrong
    first = next((cost for cost in costs if cost is not None), None)
    return first or Finding.of(observed="all right", expected="all right", passed=True)


class Trial:
    """One run: a call from each of three roots, each when all is quiet, and then two at once from one of them."""

    def __init__(self, task: Task, world: int) -> None:
        self.task, self.world = task, world
        last = int(random.integers(world))
        self.roots = [0, world - 1, world // 2, last, last]
        self.given = [task.given(world, root) for root in self.roots]
        self.quiet = range(len(self.roots) - 2)

    def begins(self, call: int) -> float:
        """When all ranks make a call, but for late ones."""
        return SLOT_SECONDS * (call + 1)

    def arguments(self) -> list[Call]:
        """By rank."""
        late = random.uniform(0.0, LATE_SECONDS, self.world)
        times = [
            [self.begins(call) + (0.0 if call in self.quiet else late[rank]) for call in range(len(self.roots) - 1)]
            for rank in range(self.world)
        ]
        return [
            {
                "calls": [
                    {**given[rank], "root": root, "at_seconds": float(at)}
                    for given, root, at in zip(self.given, self.roots, [*times[rank], 0.0], strict=True)
                ]
            }
            for rank in range(self.world)
        ]

    def place(self, call: int) -> str:
        """For people."""
        late = "" if call in self.quiet else ", some ranks late"
        return f"{self.world} rank{'s' * (self.world > 1)}, call {call + 1} with root {self.roots[call]}{late}"

    def wrong(self, run: Run, where: str = "") -> Finding | None:
        """What a rank has that it should not have, or has used, or has left undone."""
        expected = f"{self.task.function} with {self.world} rank{'s' * (self.world > 1)}{where}: it ends well"
        if run.failure:
            return Finding.failed(run, expected)
        for rank in range(self.world):
            if kinds := sorted(set(run.log.kinds(rank))):
                observed, expected = f"collectives of torch.distributed: {', '.join(kinds)}", "messages between ranks"
                return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank}")
        for call, (given, root) in enumerate(zip(self.given, self.roots, strict=True)):
            right = self.task.right(given, root)
            for rank, found in enumerate(run.results):
                for name, wanted in right[rank].items():
                    if told := _difference(found[call][name], wanted):
                        what = "what it has in the end" if name == "result" else "its input, after the call"
                        place = f"rank {rank}, {what}; {self.place(call)}{where}"
                        return Finding.of(observed=told, expected=_told(wanted, name), passed=False, where=place)
            if self.task.to_the_last_bit:
                results = [found[call]["result"] for found in run.results]
                if apart := [rank for rank, result in enumerate(results) if not np.array_equal(result, results[0])]:
                    observed = f"the sums of ranks {apart} differ from rank 0's in their last bits"
                    expected = "the same sum on every rank, to the last bit"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=self.place(call))
        return None

    def cost(self, run: Run) -> Finding | None:
        """What was right, but cost too much, or was not over yet."""
        begun = [[wait.end_seconds for wait in self._waits(run, rank)][:-1] for rank in range(self.world)]
        returned = [[wait.start_seconds for wait in self._waits(run, rank)][1:] for rank in range(self.world)]
        if any(len(calls) != len(self.roots) for calls in begun):
            return Finding.of(observed="other waits than the driver's", expected="messages alone", share=0.5)
        for message in run.log.messages:
            call = bisect_right(begun[message.source], message.posted_seconds + EXACT) - 1
            if message.ended_seconds > returned[message.source][call] + EXACT:
                observed = (
                    f"{self.task.function} returned on rank {message.source} while its message to rank "
                    f"{message.target} was still on its way"
                )
                expected = "every message is over when the function returns: wait for what isend gave you"
                return Finding.of(observed=observed, expected=expected, share=0.5, where=self.place(call))
        for call in self.quiet:
            sent = np.zeros((self.world, self.world), dtype=np.int64)
            for message in run.log.messages:
                if self.begins(call) - EXACT <= message.posted_seconds < self.begins(call + 1) - EXACT:
                    sent[message.source, message.target] += message.num_bytes
            if wasted := self.task.wasted(sent, self.roots[call]):
                observed, expected = wasted.split("; ")
                return Finding.of(observed=observed, expected=expected, share=0.5, where=self.place(call))
            took, may = max(calls[call] for calls in returned) - self.begins(call), self.task.seconds(self.world)
            if took > may + EXACT:
                observed = f"the right tensors, after {1e3 * took:.3f} ms"
                expected = f"after {1e3 * may:.3f} ms; one message of {BYTES} bytes takes {1e3 * MESSAGE_SECONDS:g} ms"
                return Finding.of(observed=observed, expected=expected, share=0.5, where=self.place(call))
        return None

    def _waits(self, run: Run, rank: int) -> Sequence[Any]:
        return [busy for busy in run.log.busy if busy.rank == rank and busy.kind == WAIT]


def _seconds(formula: Callable[[float, int, float, float], float], num_bytes: int, world: int) -> float:
    return formula(num_bytes, world, BYTES_PER_SECOND, LATENCY_SECONDS)


MESSAGE_SECONDS = LATENCY_SECONDS + BYTES / BYTES_PER_SECOND


def _tensor() -> Array:
    return random.standard_normal(SHAPE)


def _own_tensors(world: int, _root: int) -> list[Call]:
    return [{"tensor": _tensor()} for _ in range(world)]


def _total(given: list[Call]) -> Array:
    return np.sum([call["tensor"] for call in given], axis=0)


def _other_bytes(sent: NDArray[np.int64], wanted: dict[tuple[int, int], int]) -> str:
    """The first link that carried other bytes than these. A rank sends itself nothing."""
    for source, target in np.ndindex(*sent.shape):
        right = wanted.get((source, target), 0) if source != target else 0
        if sent[source, target] != right:
            return f"rank {source} sends {sent[source, target]} bytes to rank {target}; {right} bytes"
    return ""


def _too_many(verb: str, counts: NDArray[np.int64], most: int) -> str:
    """The rank that sends or receives the most, where that is more than allowed."""
    rank = int(np.argmax(counts))
    return f"rank {rank} {verb} {counts[rank]} bytes; at most {most} bytes" if counts[rank] > most else ""


def _difference(found: Any, wanted: Any) -> str:
    """What is wrong with a tensor, a list of tensors, or None; "" where nothing is."""
    if wanted is None or found is None:
        return "" if found is wanted else _told(found)
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return _told(found)
        differences = [_difference(one, other) for one, other in zip(found, wanted, strict=True)]
        return next((f"piece {piece}: {told}" for piece, told in enumerate(differences) if told), "")
    if not isinstance(found, np.ndarray) or found.shape != wanted.shape:
        return _told(found)
    wrong = np.count_nonzero(~np.isclose(found, wanted, rtol=1e-9, atol=1e-12))
    return f"{wrong} of its {wanted.size} numbers are others" if wrong else ""


def _told(value: Any, name: str = "result") -> str:
    if value is None:
        return "None"
    if name == "input":
        return "as it was before"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"a tensor of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
