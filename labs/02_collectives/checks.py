"""What lab 02 asks of tasks.py. Every rank's numbers are drawn anew for every call, and only that rank has them.

Half of the points are for the right tensors, in every world size, for several roots, with late ranks and on real gloo.
The other half is for how they travelled: which bytes from whom to whom, and in how much time. Every run of every
function goes through `_judged`, which judges both by the switch's log, call by call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory import collectives as theory

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed
    from distsim.testbed.log import Busy

Array = NDArray[Any]
Sent = NDArray[np.int64]
Call = dict[str, Any]  # the arguments of one rank's call, or what it gave

# The space of all inputs. The corners are in every check; the rest is drawn.
WORLDS = (1, 2, 3, 9)  # 9: log2 rounded, or rounded down, is too small, and so are the rounds of the notebook's 8 ranks
MORE_WORLDS = ((5, 7), (4, 6, 8))  # one of each in each check
GLOO_WORLD = 2
FEW_NUMBERS = ((), (1,))  # one of them in each run, in turn, and one without numbers
NO_NUMBERS = ((0,), (2, 0, 3))  # not on gloo, which cannot receive nothing from anybody
SOME_NUMBERS = (1, 10, 10)  # enough for a piece for each rank, and they take less time than the latency
BYTES = (4000, 8000)  # of all other tensors: they take a few times as long as the latency
FLOATS = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}  # and rounding
KINDS = {**FLOATS, "int64": 0.0, "int32": 0.0, "uint8": 0.0}
LINKS = ((1e6, 1e-3), (1e7, 1e-4))  # bytes per second, and seconds of latency
MARK = 77  # what a caller writes into its tensor right after a call
SLOT_SECONDS = 1.0  # from one call to the next: each begins when all is quiet
LATE_SECONDS = 0.1  # of one rank, longer than any call
WAIT = "wait"  # what the drivers call the time before and after a call
EXACT = 1e-9  # of seconds


@dataclass(frozen=True)
class Task:
    """What one function has to do.

    asked: the result, in words. given: arguments of a call by rank, from tensors by rank and the root. right: what each
    rank must have then. wasted: what is wrong with the bytes that ranks sent each other, shape (ranks, ranks), for a
    root and the bytes of one tensor. seconds: that a call may take with so many bytes and ranks, on such a link.
    rooted: whether there is a root. to_the_last_bit: whether results must not differ between ranks at all.
    """

    function: str
    asked: str
    given: Callable[[list[Array], int], list[Call]]
    right: Callable[[list[Call], int], list[Call]]
    wasted: Callable[[Sent, int, int], Finding | None]
    seconds: Callable[[int, int, float, float], float]
    rooted: bool = True
    to_the_last_bit: bool = False


@check(
    points=2,
    hint="What does a rank wait for when all call the same function at once? And what if it is alone?",
    how="Begin to send and to receive, then wait for both: `batch_isend_irecv`, or `isend` before `recv`.",
)
def shift_without_deadlock(testbed: Testbed) -> Finding:
    """Ranks of a ring that all send first wait for ever, and an order of turns takes two or three messages' time."""

    def right(given: list[Call], _root: int) -> list[Call]:
        tensors = [call["tensor"] for call in given]
        return [{"result": tensors[rank - 1], "input": tensors[rank]} for rank in range(len(given))]

    task = Task(
        "shift", "the tensor of the rank before", _own_tensors, right,
        wasted=lambda sent, _, size: _other_bytes(sent, _neighbours(len(sent)), size),
        seconds=lambda size, world, *link: theory.broadcast_seconds(size, min(world, 2), *link),
        rooted=False,
    )  # fmt: skip
    return _judged(testbed, task)


@check(
    points=2,
    hint="Who sends what to whom? And what does the root wait for between two of its messages?",
    how="On the root: `isend` every piece to its rank, and wait for all of them in the end.",
)
def scatter_sends_each_its_piece(testbed: Testbed) -> Finding:
    """A list per root, which it alone has."""

    def given(pieces: list[Array], root: int) -> list[Call]:
        like = np.zeros_like(pieces[0])
        return [{"pieces": pieces if rank == root else None, "like": like} for rank in range(len(pieces))]

    def right(given: list[Call], root: int) -> list[Call]:
        pieces = given[root]["pieces"]
        return [{"result": piece, "input": call["pieces"]} for piece, call in zip(pieces, given, strict=True)]

    task = Task(
        "scatter", "the piece of this rank's number from the root's list", given, right,
        wasted=lambda sent, root, size: _other_bytes(sent, [(root, rank) for rank in range(len(sent))], size),
        seconds=lambda size, world, *link: theory.scatter_seconds(world * size, world, *link),
    )  # fmt: skip
    return _judged(testbed, task)


@check(
    points=2,
    hint="Who sends what to whom, into which tensor? And what does the root wait for between two messages?",
    how="On the root: `irecv` every piece into a tensor of its own, and wait for all of them in the end.",
)
def gather_to_the_root_alone(testbed: Testbed) -> Finding:
    """The last two calls have one root, and a rank is late: a piece of the second may come before one of the first."""

    def right(given: list[Call], root: int) -> list[Call]:
        tensors = [call["tensor"] for call in given]
        return [{"result": tensors if rank == root else None, "input": own} for rank, own in enumerate(tensors)]

    task = Task(
        "gather", "the pieces of all ranks in their order, on the root; None on the others", _own_tensors, right,
        wasted=lambda sent, root, size: _other_bytes(sent, [(rank, root) for rank in range(len(sent))], size),
        seconds=lambda size, world, *link: theory.gather_seconds(world * size, world, *link),
    )  # fmt: skip
    return _judged(testbed, task)


@check(
    points=3,
    hint="How many ranks can have the tensor after one message, after two, after three? And who could help?",
    how="Whoever has it passes it on: after each round twice as many ranks have it. For 5 ranks that takes 3 rounds.",
)
def broadcast_in_few_rounds(testbed: Testbed) -> Finding:
    """With messages of 5 ms, six from one root take 25 ms, even at the same time, and a tree takes 15 ms."""
    task = Task(
        "broadcast", "the root's tensor", _own_tensors,
        right=lambda given, root: [{"result": given[root]["tensor"]} for _ in given],
        wasted=lambda sent, _, size: _too_many("receives", sent.sum(axis=0), size),
        seconds=theory.broadcast_seconds,
    )  # fmt: skip
    return _judged(testbed, task)


@check(
    points=3,
    hint="Which two sums can be made at the same time? And whose tensor is added into?",
    how="It is a broadcast backwards: in each round half of those left send what they have added up.",
)
def reduce_in_few_rounds(testbed: Testbed) -> Finding:
    """Sums are compared up to the order of the additions."""

    def right(given: list[Call], root: int) -> list[Call]:
        total = _total(given)
        return [{"result": total if rank == root else None, "input": call["tensor"]} for rank, call in enumerate(given)]

    task = Task(
        "reduce", "the sum over all ranks, on the root; None on the others", _own_tensors, right,
        wasted=lambda sent, _, size: _too_many("sends", sent.sum(axis=1), size),
        seconds=theory.reduce_seconds,
    )  # fmt: skip
    return _judged(testbed, task)


@check(
    points=2,
    hint="Which links are idle while the pieces travel, and whose link carries the most?",
    how="N - 1 shifts: each rank passes on the piece that came last.",
)
def all_gather_without_a_centre(testbed: Testbed) -> Finding:
    """Through one rank, all pieces would leave that rank N - 1 times."""

    def right(given: list[Call], _root: int) -> list[Call]:
        tensors = [call["tensor"] for call in given]
        return [{"result": tensors, "input": own} for own in tensors]

    task = Task(
        "all_gather", "the pieces of all ranks in their order", _own_tensors, right,
        wasted=lambda sent, _, size: _too_many("sends", sent.sum(axis=1), (len(sent) - 1) * size),
        seconds=lambda size, world, *link: theory.all_gather_seconds(world * size, world, *link),
        rooted=False,
    )  # fmt: skip
    return _judged(testbed, task)


@check(
    points=2,
    hint="In which order does each rank add? And which function gives one tensor to all?",
    how="A reduce to one rank, and a broadcast from there.",
)
def all_reduce_alike_to_the_last_bit(testbed: Testbed) -> Finding:
    """Ranks that add in different orders end with models that drift apart."""
    task = Task(
        "all_reduce", "the sum over all ranks", _own_tensors,
        right=lambda given, _: [{"result": _total(given)} for _ in given],
        wasted=lambda sent, _, size: _too_many("sends", sent.sum(axis=1), (len(sent) - 1).bit_length() * size),
        seconds=lambda size, world, *link: 2 * theory.broadcast_seconds(size, world, *link),
        rooted=False, to_the_last_bit=True,
    )  # fmt: skip
    return _judged(testbed, task)


def _judged(testbed: Testbed, task: Task) -> Finding:
    """The first wrong tensor or forbidden collective costs all points, else the first waste costs half of them.

    Where something is still on its way when a function returns, gloo is not asked: what it gives then is chance.
    """
    under_way: Finding | None = None
    waste: Finding | None = None
    pairs = zip(testbed.rng.permutation(list(FLOATS)), testbed.rng.permutation(list(KINDS)[len(FLOATS) :]), strict=True)
    kinds = [str(kind) for pair in pairs for kind in testbed.rng.permutation(pair)]
    more = [int(testbed.rng.choice(worlds)) for worlds in MORE_WORLDS]
    for turn, world in enumerate((*WORLDS, *more)):
        trial = Trial(testbed.rng, task, world, kinds, turn)
        run = testbed.run(task.function, trial.arguments(), cluster=trial.cluster())
        if (wrong := trial.wrong(run)) is not None:
            return wrong
        under_way = under_way or trial.under_way(run)
        waste = waste or trial.waste(run)
    if under_way is not None:
        return under_way
    trial = Trial(testbed.rng, task, GLOO_WORLD, kinds, 0, network=", on gloo")
    run = testbed.run(task.function, trial.arguments(), backend="gloo")
    passed = Finding.of(observed="all right", expected="all right", passed=True)
    return trial.wrong(run) or waste or passed


class Trial:
    """One run: calls with several roots, each when all is quiet, and then two with one root, one after the other.

    The last of the quiet calls has the root of the first one, which knows by then what it is to be root. Before the two
    calls after it, one rank is later than all others: what is meant for the second call may come before the first one
    is over. turn: the number of the run in its check; in any three that follow each other, large tensors have all
    kinds, and in each of them one kind has a point and the other has none.
    """

    def __init__(
        self, rng: np.random.Generator, task: Task, world: int, kinds: list[str], turn: int, network: str = ""
    ) -> None:
        self.task, self.world, self.network = task, world, network
        self.link = LINKS[rng.integers(len(LINKS))]
        last = int(rng.integers(world))
        roots = [int(root) for root in rng.permutation([0, world - 1, world // 2])]
        self.roots = [*roots, roots[0], last, last]
        few, none = (shapes[turn % 2] for shapes in (FEW_NUMBERS, FEW_NUMBERS if network else NO_NUMBERS))
        one, last_two, *others = np.roll(kinds, -2 * turn).tolist()
        many = {kind: (10, int(rng.integers(*BYTES)) // np.dtype(kind).itemsize // 10) for kind in (one, last_two)}
        drawn: list[tuple[str, tuple[int, ...]]] = [(others[0], few), (others[1], none), (others[2], SOME_NUMBERS)]
        drawn.insert(int(rng.integers(4)), (one, many[one]))
        drawn += [(last_two, many[last_two])] * 2
        tensors = [[_numbers(rng, shape, kind) for _ in range(world)] for kind, shape in drawn]
        self.bytes = [call[0].nbytes for call in tensors]
        self.given = [task.given(call, root) for call, root in zip(tensors, self.roots, strict=True)]
        self.quiet = range(len(self.roots) - 2)
        self.late = (last + int(rng.integers(1, world))) % world if world > 1 else 0

    def cluster(self) -> Cluster:
        """Equal links."""
        speed, latency = self.link
        return Cluster.model_validate(
            {"workers": self.world, "bandwidth": f"{speed!r} B/s", "latency": f"{latency!r} s"}
        )

    def arguments(self) -> list[Call]:
        """By rank."""
        return [{"calls": [self._call(call, rank) for call in range(len(self.roots))]} for rank in range(self.world)]

    def _call(self, call: int, rank: int) -> Call:
        late = LATE_SECONDS if rank == self.late and call not in self.quiet else 0.0
        at_seconds = _begins(min(call, len(self.quiet))) + late
        return {**self.given[call][rank], "root": self.roots[call], "at_seconds": at_seconds}

    def wrong(self, run: Run) -> Finding | None:
        """What a rank has that it should not have, or a collective that it has used."""
        if run.failure:
            expected = f"{self.task.function} with {_ranks(self.world)}{self.network}: it ends well"
            return Finding.failed(run, expected)
        for rank in range(self.world):
            if kinds := sorted(set(run.log.kinds(rank))):
                observed, expected = f"collectives of torch.distributed: {', '.join(kinds)}", "messages between ranks"
                return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank}")
        found = (self._wrong_in(call, [result[call] for result in run.results]) for call in range(len(self.roots)))
        return next((one for one in found if one is not None), None)

    def _wrong_in(self, call: int, found: list[Call]) -> Finding | None:
        for rank, right in enumerate(self.task.right(self.given[call], self.roots[call])):
            for name, wanted in right.items():
                if observed := _difference(found[rank][name], wanted):
                    what = "what it has in the end" if name == "result" else "its input after the call"
                    where = f"rank {rank}, {what}; {self._place(call)}"
                    expected = self.task.asked if name == "result" else "as it was before the call"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        results = [one["result"] for one in found]
        apart = [rank for rank, result in enumerate(results) if not np.array_equal(result, results[0])]
        if self.task.to_the_last_bit and apart:
            observed = f"last bits that differ from rank 0's, on ranks {', '.join(map(str, apart))}"
            expected = "the same sum on every rank, to the last bit"
            return Finding.of(observed=observed, expected=expected, passed=False, where=self._place(call))
        return None

    def under_way(self, run: Run) -> Finding | None:
        """What was still on its way when a function returned, or over in time by luck."""
        return self._unfinished(run) or self._unwaited(run)

    def waste(self, run: Run) -> Finding | None:
        """What travelled in vain or took too long, though every tensor was right."""
        if not (waits := self._waits(run)):
            return Finding.of(observed="other waits than the driver's", expected="messages alone", share=0.5)
        found: Finding | None = None
        for call in (*self.quiet, len(self.quiet)):
            last = call + 1 if call in self.quiet else -1
            found = found or self._bytes(run, call) or self._time(call, max(own[last].start_seconds for own in waits))
        return found

    def _waits(self, run: Run) -> list[list[Busy]]:
        """The driver's waits by rank: before each call, and after the last one. Empty if there are others."""
        waits = [
            [busy for busy in run.log.busy if (busy.rank, busy.kind) == (rank, WAIT)] for rank in range(self.world)
        ]
        return [] if any(len(own) != len(self.roots) + 1 for own in waits) else waits

    def _unfinished(self, run: Run) -> Finding | None:
        waits = self._waits(run)
        for message in run.log.messages if waits else ():
            own = waits[message.source]
            call = bisect_right([wait.end_seconds for wait in own[:-1]], message.posted_seconds + EXACT) - 1
            if message.ended_seconds > own[call + 1].start_seconds + EXACT:
                observed = f"it returns while its message to rank {message.target} is still on its way"
                expected = "when a function returns, all that its rank has begun is over"
                where = f"rank {message.source}; {self._place(call)}"
                return Finding.of(observed=observed, expected=expected, share=0.5, where=where)
        return None

    def _unwaited(self, run: Run) -> Finding | None:
        """A message that nobody has waited for."""
        if not run.log.unwaited:
            return None
        observed, expected = str(run.log.unwaited[0]), "a wait for each message that a rank has begun"
        return Finding.of(observed=observed, expected=expected, share=0.5, where=_ranks(self.world))

    def _bytes(self, run: Run, call: int) -> Finding | None:
        sent = np.zeros((self.world, self.world), dtype=np.int64)
        for message in run.log.messages:
            if _begins(call) - EXACT <= message.posted_seconds < _begins(call + 1) - EXACT:
                sent[message.source, message.target] += message.num_bytes
        found = self.task.wasted(sent, self.roots[call], sum(self._together(call)))
        return found and replace(found, where=self._place(call))

    def _time(self, call: int, over_seconds: float) -> Finding | None:
        sizes = self._together(call)
        late = 0.0 if call in self.quiet else LATE_SECONDS
        took = over_seconds - _begins(call) - late
        may = sum(self.task.seconds(size, self.world, *self.link) for size in sizes)
        if took <= may + EXACT:
            return None
        observed = f"the right tensors after {1e3 * took:g} ms"
        message = 1e3 * theory.broadcast_seconds(sizes[0], 2, *self.link)
        expected = f"after {1e3 * may:g} ms at the latest; one message of {sizes[0]} bytes takes {message:g} ms"
        return Finding.of(observed=observed, expected=expected, share=0.5, where=self._place(call))

    def _together(self, call: int) -> list[int]:
        """The bytes of the tensors of a call; of the last two calls, which follow each other, those of both."""
        return [self.bytes[call]] if call in self.quiet else self.bytes[call:]

    def _place(self, call: int) -> str:
        late = "" if call in self.quiet or self.world == 1 else f", rank {self.late} late"
        root = f" with root {self.roots[call]}" if self.task.rooted else ""
        first = self.given[call][self.roots[call]]
        tensor = first["pieces"][0] if "pieces" in first else first["tensor"]
        kind = f", tensors of shape {tensor.shape}, {tensor.dtype}"
        return f"{_ranks(self.world)}, call {call + 1}{root}{late}{kind}{self.network}"


def _begins(call: int) -> float:
    """When all ranks make a call."""
    return SLOT_SECONDS * (call + 1)


def _ranks(count: int) -> str:
    return f"{count} rank" if count == 1 else f"{count} ranks"


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    """Numbers that nobody can guess. No floating-point number holds a sum of those of type int64."""
    if kind.startswith("float"):
        return np.asarray(rng.standard_normal(shape), kind)
    limits = np.iinfo(kind)
    return np.asarray(rng.integers(limits.min // 16, limits.max // 16, shape, endpoint=True), kind)


def _own_tensors(tensors: list[Array], _root: int) -> list[Call]:
    return [{"tensor": tensor} for tensor in tensors]


def _total(given: list[Call]) -> Array:
    tensors = [call["tensor"] for call in given]
    return np.asarray(np.add.reduce(tensors, dtype=tensors[0].dtype))


def _neighbours(world: int) -> list[tuple[int, int]]:
    return [(rank, (rank + 1) % world) for rank in range(world)]


def _other_bytes(sent: Sent, wanted: list[tuple[int, int]], size: int) -> Finding | None:
    """The first link that carried anything but one tensor, or, if not wanted, nothing; a rank sends itself nothing."""
    for source, target in np.ndindex(*sent.shape):
        right = size if (source, target) in wanted and source != target else 0
        if sent[source, target] != right:
            observed = f"{sent[source, target]} bytes from rank {source} to rank {target}"
            return Finding.of(observed=observed, expected=f"{right} bytes", share=0.5)
    return None


def _too_many(verb: str, counts: Sent, most: int) -> Finding | None:
    """The rank that sends or receives the most, where that is more than it may."""
    rank = int(np.argmax(counts))
    if counts[rank] <= most:
        return None
    return Finding.of(observed=f"rank {rank} {verb} {counts[rank]} bytes", expected=f"at most {most} bytes", share=0.5)


def _difference(found: Any, wanted: Any) -> str:
    """What is wrong with a tensor, a list of tensors, or None; "" where nothing is."""
    if wanted is None or found is None:
        return "" if found is wanted else _told(found)
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return _told(found)
        differences = [_difference(one, other) for one, other in zip(found, wanted, strict=True)]
        return next((f"piece {piece}: {told}" for piece, told in enumerate(differences) if told), "")
    if not isinstance(found, np.ndarray) or (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return _told(found)
    rounding = KINDS[str(wanted.dtype)]
    near = (
        np.isclose(found.astype(float), wanted.astype(float), rtol=rounding, atol=rounding)
        if rounding
        else found == wanted
    )
    if np.all(near):
        return ""
    if np.all(found == MARK):
        return "it changes with the tensor that was given, which the caller has written over: they share memory"
    return f"{np.count_nonzero(~np.asarray(near))} of {wanted.size} numbers are wrong"


def _told(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, list):
        return f"a list of {len(value)} tensors"
    return (
        f"a tensor of shape {value.shape}, {value.dtype}"
        if isinstance(value, np.ndarray)
        else f"a {type(value).__name__}"
    )
