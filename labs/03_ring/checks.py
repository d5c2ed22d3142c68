"""What lab 03 asks of tasks.py. Numbers are drawn anew for every run, and each rank is given its own alone.

Every run of every function goes through `_judged`, which holds all rules of the lab against it: the right numbers in
the right place, messages to the right rank and no collective, the bytes of the algorithm, and its time. What passed the
testbed's network, and when, is the switch's log; the times are virtual, so they are exact. A check gives nothing where
a rule of its own is broken, and half of its points where another one is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory import collectives as theory

if TYPE_CHECKING:
    from distsim.testbed import Message, Testbed

    Array = np.ndarray[Any, Any]
    Table = dict[str, Any]

# The space of all inputs. Each run takes all corners of its kind, in an order that is drawn; the rest is drawn.
KINDS = {"float32": 1e-6, "float64": 1e-12, "float16": 1e-2, "int64": 0.0, "int32": 0.0, "uint8": 0.0}  # and rounding
SHAPES = ((2, 0, 3), (5, 3), (7, 11, 13))  # beside those that depend on the number of ranks
LARGE = 100_000  # numbers
LARGEST = 1_200_000  # of two ranks, so that a chunk is larger than any buffer that somebody might think of
SPEEDS = {1: (0.5, 3.0), 3: (1e7, 1e9), 5: (1e7, 1e9)}  # bytes per second, by the case
MOST = 8  # ranks of which every number is tried
OTHERS = (4, 6, 7, 8, 11)  # of which one is drawn beside one rank, two, three and five
BEYOND = (9, 10)  # of which one is drawn
# More ranks than these get every second tensor, or every fourth, since a ring of N ranks sends N (N - 1) messages.
MANY, MORE = 4, 6
LINKS = ((1.25e8, 1e-4), (1.25e7, 1e-3), (1.25e9, 1e-5))  # bytes per second, and seconds of latency
SLOWER = (3.0, 5.0)  # how many times a slow NIC is slower
SLOT_SECONDS = 2.0  # from the begin of one call to that of the next, if it waits until all is quiet
LATE_SECONDS = 0.05  # of one rank, in one call of each run
BAND = 0.01  # of a time: virtual clocks do not tremble
WAIT = "wait"  # what the drivers call the time before and after a call
EXACT = 1e-9  # of seconds
SUM, ROUTE, BYTES, TIME = "sum", "route", "bytes", "time"  # the rules
Broken = tuple[str, str]  # what is observed, and where
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One call of a run. given: by rank, what the function gets. beside: whether it follows the call before at once."""

    told: str
    given: Sequence[Table]
    numbers: int  # of one rank's tensor
    itemsize: int
    longest: int  # numbers of the longest chunk
    beside: bool = False

    @property
    def num_bytes(self) -> int:
        """Of one rank's tensor."""
        return self.numbers * self.itemsize


@dataclass(frozen=True)
class Task:
    """What one function has to do.

    driver: in ranks.py, with its further arguments. asked: in words. pace: why it can be as fast as asked. wrong: what
    is wrong with what a call left on a rank; "" where nothing is. route: what is wrong with a message; "" where nothing
    is. bytes: what is wrong with the messages of calls that followed each other. seconds: that a call may take on links
    of this speed and latency. rounds: whether a rank's message is over before it begins the next one.
    """

    driver: str
    arguments: Table
    asked: str
    pace: str
    wrong: Callable[[Call, Sequence[Table], int], str]
    route: Callable[[Message, int], str]
    bytes: Callable[[Sequence[Call], Sequence[Message], int], str]
    seconds: Callable[[Call, int, float, float], float]
    rounds: bool = False


@check(
    points=2,
    hint="Write into a chunk, and look at the tensor. Then think of a tensor with fewer numbers than chunks.",
    how="Flatten without a copy (`view`), and cut into `count` pieces (`tensor_split`): some may be empty.",
)
def chunks_are_even_views(testbed: Testbed) -> Finding:
    """Shapes that the count does not divide, fewer numbers than chunks, a single number, none; rows of a tensor.

    A part of each tensor, at the same place in memory, is cut before it.
    """
    rng = testbed.rng
    corners: list[tuple[tuple[int, ...], int]] = [((), 3), ((0,), 2), ((12,), 4), ((2, 1), 5), ((7,), 1), ((7,), 8)]
    corners += [((8, 3), 4), ((3, 4), 1), ((1,), 1), ((1,), 2), ((15,), 11), ((61,), 7)]
    corners += [(shape, int(rng.integers(2, 9))) for shape in SHAPES]
    calls = []
    for number, (shape, count) in enumerate(corners):
        kind = _drawn(rng, KINDS)
        row = number % 2 if number % 3 else None
        calls.append({"whole": _numbers(rng, _whole(shape, row), kind), "row": row, "marks": np.arange(1, count + 1)})
    run = testbed.run("chunks", arguments=[{"calls": calls}])
    if run.failure:
        return Finding.failed(run, "flat chunks that share the tensor's memory")
    for (shape, count), call, result in zip(corners, calls, run.results[0], strict=True):
        lengths = _even_lengths(_own(call).size, count)
        if reason := _no_views(call, result, lengths):
            expected = f"flat chunks of {lengths} numbers (or so in another order), in the tensor's memory and type"
            place = "a tensor" if call["row"] is None else f"row {call['row']} of a larger tensor,"
            where = f"{place} of shape {shape}, {call['whole'].dtype}, cut into {count}"
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
    return Finding.of(observed="even views", expected="even views", passed=True)


@check(
    points=2,
    hint="Draw three ranks and follow the chunk 0 backwards from rank 0: who had it before, and who was the first?",
    how="In round k, rank r adds what comes in to `parts[r - 2 - k]`, and sends that one in the next round.",
)
def each_rank_sums_its_chunk(testbed: Testbed) -> Finding:
    """Chunks of several lengths and types, and empty ones; alone, two ranks, three, five, and another number."""

    def wrong(call: Call, left: Sequence[Table], rank: int) -> str:
        right = _total([given["parts"][rank] for given in call.given])
        return _differs(left[rank]["own"], right, f"parts[{rank}]", call.given[rank]["parts"][rank])

    asked = "on each rank r, in parts[r] itself, the sum of all ranks' parts[r]"
    worlds = [(1,), (2,), (3,), (5,), (_drawn(testbed.rng, OTHERS),)]
    task = _around("reduce_scatter", {}, asked, wrong, phases=1)
    return _found(testbed, task, worlds, _parts, own=(SUM, ROUTE, BYTES, TIME))


@check(
    points=2,
    hint="Draw three ranks: what does a rank have after one round that it had not before, and who lacks it still?",
    how="In round k, rank r sends `parts[r - k]` and receives `parts[r - k - 1]`: what came in goes on.",
)
def every_rank_has_every_chunk(testbed: Testbed) -> Finding:
    """All but the own chunk hold other numbers at the start."""

    def wrong(call: Call, left: Sequence[Table], rank: int) -> str:
        found = (
            _differs(part, call.given[owner]["parts"][owner], f"parts[{owner}]", call.given[rank]["parts"][owner])
            for owner, part in enumerate(left[rank]["parts"])
        )
        return next(filter(None, found), "")

    asked = "on every rank, in parts[r] itself, what rank r had there"
    worlds = [(1,), (2,), (3,), (5,), (_drawn(testbed.rng, OTHERS),)]
    task = _around("all_gather", {}, asked, wrong, phases=1)
    return _found(testbed, task, worlds, _parts, own=(SUM, ROUTE, BYTES, TIME))


@check(
    points=3,
    hint="Which of these has the tensor that it says, and no other one had: few numbers, another type, one rank alone?",
    how="chunks, then reduce_scatter, then all_gather; buffers have the chunk's own type of numbers (`empty_like`).",
)
def the_ring_sums(testbed: Testbed) -> Finding:
    """One rank, two and five on the testbed, and three on gloo."""
    return _found(testbed, _ring(), [(1,), (2,), (5,)], _tensors, own=(SUM, ROUTE), gloo=True)


@check(
    points=3,
    hint="Count for one rank: how many messages does it send, to whom, and how long is each of them?",
    how="2 (N - 1) rounds, and in each of them one chunk of S / N bytes from every rank to the next.",
)
def the_fewest_bytes(testbed: Testbed) -> Finding:
    """Sizes that the ranks divide, and sizes that they do not."""
    return _found(testbed, _ring(), [(3,), (6,)], _tensors, own=(ROUTE, BYTES))


@check(
    points=3,
    hint="Is there a moment when a rank could send or receive, and waits for the other one of the two?",
    how="In a round begin to send and to receive, and only then wait for both: nobody waits for a turn.",
)
def the_time_of_a_ring(testbed: Testbed) -> Finding:
    """Equal links, fast or slow, and one slow NIC, at whose pace all go."""
    slower = float(testbed.rng.uniform(*SLOWER))
    worlds = [(3,), (4, slower), (7,), (8,), (_drawn(testbed.rng, BEYOND),)]
    return _found(testbed, _ring(), worlds, _tensors, own=(ROUTE, BYTES, TIME))


@check(
    points=3,
    hint="What must rank 0 have before it answers the first one? And what does each of the others send, and get?",
    how="Rank 0 receives N - 1 tensors, adds its own, and only then sends the sum N - 1 times.",
)
def the_server_sums(testbed: Testbed) -> Finding:
    """What it leaves, what its link carries, and how long that takes: messages at once, or one after the other.

    For every number of ranks up to eight, and one beyond, since no other check runs the server.
    """

    def route(message: Message, _world: int) -> str:
        return "" if 0 in (message.source, message.target) else f"rank {message.source} sent to rank {message.target}"

    def messages(calls: Sequence[Call], sent: Sequence[Message], world: int) -> str:
        found = sorted((message.source, message.target, message.num_bytes) for message in sent)
        ways = [way for other in range(1, world) for way in ((0, other), (other, 0))]
        if found == sorted((*way, call.num_bytes) for call in calls for way in ways):
            return _answered_early(sent, len(calls))
        into = [size for _, target, size in found if target == 0]
        out = [size for source, _, size in found if source == 0]
        return (
            f"{len(into)} messages, {sum(into)} bytes, to rank 0, and {len(out)} messages, {sum(out)} bytes, from it; "
            f"{sum(call.num_bytes for call in calls)} bytes are to go to and from each of {world - 1} workers"
        )

    def seconds(call: Call, world: int, bytes_per_second: float, latency: float) -> float:
        links = (bytes_per_second, latency)
        least = theory.parameter_server_seconds(call.num_bytes, world, *links, colocated=True)
        return least + 2 * max(world - 2, 0) * latency

    asked = (
        "the sum of all ranks' tensors on every rank, in place; one message to rank 0 from each other rank, one back"
    )
    pace = "all workers send at the same time, and rank 0 sends each of them one tensor"
    task = Task("all_reduce", {"function": "server_all_reduce"}, asked, pace, _wrong_sum, route, messages, seconds)
    worlds = [*((world,) for world in range(1, MOST + 1)), (_drawn(testbed.rng, BEYOND),)]
    return _found(testbed, task, worlds, _tensors, own=(SUM, ROUTE, BYTES, TIME), gloo=True)


@check(
    points=2,
    hint="Count rounds; then what one message costs in a round, or all messages that share rank 0's link.",
    how="Write down who sends what in each round for 3 ranks, add up, and put N in place of 3: no number is rounded.",
)
def predictions(testbed: Testbed) -> Finding:
    """Sizes, ranks and links that are drawn; few bytes for many ranks, none, a slow link, no latency, one rank."""
    rng = testbed.rng
    sizes = [0, 1, 7, 1000.5, *(int(rng.integers(10**3, 10**8)) for _ in range(3))]
    ranks = [2, 3, 5, 8, int(rng.integers(4, 16)), int(rng.integers(16, 65)), int(rng.integers(65, 1025))]
    cases = [
        {
            "num_bytes": num_bytes, "ranks": count,
            "bytes_per_second": float(rng.uniform(*SPEEDS[number])) if number % 2 else int(rng.integers(10**7, 10**9)),
            "latency_seconds": 0 if number == 4 else float(rng.uniform(1e-5, 1e-2)),
        }
        for number, (num_bytes, count) in enumerate(zip(sizes, ranks, strict=True))
    ]  # fmt: skip
    alone = {"num_bytes": 4000, "ranks": 1, "bytes_per_second": 1e8, "latency_seconds": 1e-3}
    run = testbed.run("predictions", arguments=[{"cases": [*cases, alone]}])
    if run.failure:
        return Finding.failed(run, "a number from each of the four formulas")
    for case, given, seconds in zip(
        [*cases, alone], *(run.results[0][name] for name in ("bytes", "seconds")), strict=True
    ):
        links = tuple(case.values())
        right = {
            "ring_bytes": (given[0], theory.all_reduce_bytes_per_worker(*links[:2]), "bytes"),
            "server_bytes": (given[1], (case["ranks"] - 1) * case["num_bytes"], "bytes"),
            "ring_seconds": (seconds[0], theory.ring_all_reduce_seconds(*links), "s"),
        }
        if case is not alone:  # a server without workers is not asked for
            right["server_seconds"] = (seconds[1], theory.parameter_server_seconds(*links, colocated=True), "s")
        for name, (observed, expected, unit) in right.items():
            if not abs(observed - expected) <= EXACT * expected:
                return Finding.of(
                    observed=f"{observed:.9g} {unit}", expected=f"{expected:.9g} {unit}", passed=False,
                    where=f"{name} of {case['num_bytes']} bytes, {case['ranks']} ranks, "
                    f"{case['bytes_per_second'] / 1e6:g} MB/s, {1e3 * case['latency_seconds']:.3f} ms",
                )  # fmt: skip
    return Finding.of(observed="all four as the theory has them", expected="the same", passed=True)


def _found(
    testbed: Testbed,
    task: Task,
    worlds: Sequence[tuple[int] | tuple[int, float]],
    drawn: Callable[[np.random.Generator, int], list[Call]],
    *,
    own: Collection[str],
    gloo: bool = False,
) -> Finding:
    """Nothing where a rule of its `own` is broken in any run, half where another one is.

    worlds: the number of ranks of each run, with how many times slower one NIC is, if any. drawn: the calls of a run.
    """
    other: Finding | None = None
    backends = ["testbed"] * len(worlds) + (["gloo"] if gloo else [])
    for (world, *slower), backend in zip([*worlds, *([(3,)] if gloo else [])], backends, strict=True):
        calls = drawn(testbed.rng, world)
        if backend == "gloo":  # it cannot receive nothing from anybody
            calls = [call for call in calls if call.numbers]
        for rule, finding in _judged(testbed, task, world, calls, *slower, backend=backend):
            if rule in own:
                return finding
            other = other or Finding.of(
                observed=finding.observed, expected=finding.expected, share=0.5, where=finding.where
            )
    return other or Finding.of(observed=task.asked, expected=task.asked, passed=True)


def _judged(
    testbed: Testbed, task: Task, world: int, calls: Sequence[Call], slower: float = 1.0, *, backend: str
) -> Iterator[tuple[str, Finding]]:
    """Every rule of the lab that one run breaks, with the finding."""
    rng = testbed.rng
    fast, latency = LINKS[rng.integers(len(LINKS))]
    slow = {int(rng.integers(world)): fast / slower} if slower > 1.0 else {}
    slots = [number for number, call in enumerate(calls) if not call.beside]  # the first calls of each slot
    late = (int(rng.integers(world)), slots[int(rng.integers(len(slots)))])

    def at_seconds(rank: int, number: int) -> float:
        slot = sum(first <= number for first in slots)
        return SLOT_SECONDS * slot + (LATE_SECONDS if late == (rank, number) else 0.0)

    arguments = [
        {
            "calls": [
                call.given[rank] | {"told": call.told, "at_seconds": at_seconds(rank, number)}
                for number, call in enumerate(calls)
            ]
        }
        for rank in range(world)
    ]
    cluster = _cluster(world, fast, latency, slow)
    run = testbed.run(task.driver, [task.arguments | given for given in arguments], cluster=cluster, backend=backend)
    place = f"{world} rank{'s' * (world > 1)}{', on gloo' if backend == 'gloo' else ''}"
    if run.failure:
        yield SUM, Finding.failed(run, f"with {place}: {task.asked}")
        yield ROUTE, Finding.failed(run, f"with {place}: {task.asked}")
        return
    for number, call in enumerate(calls):
        left = [result[number] for result in run.results]
        for rank in range(world):
            if observed := task.wrong(call, left, rank):
                where = f"rank {rank} of {place}; {call.told}"
                yield SUM, Finding.of(observed=observed, expected=task.asked, passed=False, where=where)
    if backend == "gloo":
        return
    if kinds := sorted({collective.kind for collective in run.log.collectives}):
        observed = f"collectives of torch.distributed are called: {', '.join(kinds)}"
        yield ROUTE, Finding.of(observed=observed, expected="messages from rank to rank", passed=False, where=place)
    slowest = min([fast, *slow.values()])
    links = f"{fast / 1e6:g} MB/s, {1e3 * latency:g} ms" + "".join(
        f", the NIC of rank {rank} {speed / 1e6:.1f} MB/s" for rank, speed in slow.items()
    )
    waits = [[busy for busy in run.log.busy if (busy.rank, busy.kind) == (rank, WAIT)] for rank in range(world)]
    for first, end in pairwise([*slots, len(calls)]):
        together, begin = calls[first:end], at_seconds(-1, first)
        where = f"{place}; {'; then at once '.join(call.told for call in together)}"
        sent = [one for one in run.log.messages if begin <= one.posted_seconds + EXACT < begin + SLOT_SECONDS]
        if observed := next(filter(None, (task.route(message, world) for message in sent)), ""):
            yield ROUTE, Finding.of(observed=observed, expected=task.asked, passed=False, where=where)
        if observed := task.bytes(together, sent, world):
            yield (
                BYTES,
                Finding.of(observed=observed, expected=task.asked, passed=False, where=where),
            )
        over = [own[end].start_seconds for own in waits]
        for message in sent:
            if message.ended_seconds > over[message.source] + EXACT:
                observed = f"rank {message.source} returns while its message to rank {message.target} is on its way"
                expected = "when a function returns, all that its rank has begun is over"
                yield SUM, Finding.of(observed=observed, expected=expected, passed=False, where=where)
        if task.rounds and (observed := _side_by_side(sent, world)):
            expected = "a round ends before the next one begins: messages side by side share a link"
            yield TIME, Finding.of(observed=observed, expected=expected, passed=False, where=where)
            continue
        took = max(over) - max(own[first].end_seconds for own in waits)
        most = sum(task.seconds(call, world, slowest, latency) for call in together)
        if took > most * (1 + BAND) + EXACT:
            expected = f"at most {1e3 * most:.4g} ms on links of {links}: {task.pace}"
            yield TIME, Finding.of(observed=f"{1e3 * took:.4g} ms", expected=expected, passed=False, where=where)


def _ring() -> Task:
    asked = "the sum of all ranks' tensors on every rank, in place, with shape and type as they were"
    return _around("all_reduce", {"function": "ring_all_reduce"}, asked, _wrong_sum, phases=2)


def _around(
    driver: str, arguments: Table, asked: str, wrong: Callable[[Call, Sequence[Table], int], str], phases: int
) -> Task:
    """A task whose chunks go around a ring, N - 1 rounds in each phase."""

    def route(message: Message, world: int) -> str:
        right = message.target == (message.source + 1) % world
        return "" if right else f"rank {message.source} sent to rank {message.target}, which is not its right neighbour"

    def bytes_(calls: Sequence[Call], sent: Sequence[Message], world: int) -> str:
        rounds = phases * (world - 1)
        longest = max(call.longest * call.itemsize for call in calls)
        for rank in range(world):
            sizes = [message.num_bytes for message in sent if message.source == rank]
            few = all(call.longest and call.numbers >= world for call in calls) and len(sizes) < rounds * len(calls)
            if few or len(sizes) > rounds * len(calls):
                return f"rank {rank} sends {len(sizes)} messages, one in each round would be {rounds * len(calls)}"
            if max(sizes, default=0) > longest:
                return f"rank {rank} sends {max(sizes)} bytes in one message; the longest chunk has {longest}"
        total, right = sum(message.num_bytes for message in sent), rounds * sum(call.num_bytes for call in calls)
        return (
            "" if total == right else f"all ranks together send {total} bytes, and all chunks as they are have {right}"
        )

    def seconds(call: Call, world: int, bytes_per_second: float, latency: float) -> float:
        return phases * (world - 1) * (latency + call.longest * call.itemsize / bytes_per_second)

    pace = "in each round a rank sends one chunk and receives another at the same time"
    return Task(driver, arguments, asked, pace, wrong, route, bytes_, seconds, rounds=True)


def _side_by_side(sent: Sequence[Message], world: int) -> str:
    """A rank that began a message while its last one was on its way, in words; "" if none did."""
    for rank in range(world):
        own = sorted(
            (one for one in sent if one.source == rank), key=lambda one: (one.posted_seconds, one.ended_seconds)
        )
        if any(later.posted_seconds < earlier.ended_seconds - EXACT for earlier, later in pairwise(own)):
            return f"rank {rank} begins to send a chunk while its last one is on its way"
    return ""


def _answered_early(sent: Sequence[Message], calls: int) -> str:
    """An answer of rank 0 that began before all tensors of that call were in, in words; "" if none did."""
    pushes, answers = (
        sorted((one for one in sent if (one.target == 0) is to_server), key=lambda one: one.posted_seconds)
        for to_server in (True, False)
    )
    workers = len(pushes) // calls
    for call in range(calls):
        its = slice(call * workers, (call + 1) * workers)
        last = max(pushes[its], key=lambda one: one.ended_seconds, default=None)
        for answer in answers[its]:
            if last and answer.posted_seconds < last.ended_seconds - EXACT:
                return f"rank 0 answers rank {answer.target} before the tensor of rank {last.source} is in"
    return ""


def _tensors(rng: np.random.Generator, world: int) -> list[Call]:
    """Tensors of all types of numbers, in an order that is drawn; in the end two of one kind, the second at once, and
    one of their shape and another type.

    There are always an empty one, one with fewer numbers than ranks (a single number or one number too few), one with
    as many or one more, and one that is large.
    """
    few = [(), (1,), (world - 1,)][int(rng.integers(3))]
    about = (world + int(rng.integers(2)),)
    long = int(rng.integers(200, 1000)) * world + int(rng.integers(world))
    shapes = [few, about, *SHAPES, (long,)]
    kinds = [str(kind) for kind in rng.permutation(list(KINDS))]
    calls = [_tensor(rng, world, shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    large = _tensor(rng, world, (2, (LARGEST if world == 2 else LARGE) // (2 * world) * world), "float32")
    ordered = [[*calls, large][number] for number in rng.permutation(len(calls) + 1)]
    ordered = ordered[:: 1 if world <= MANY else 2 if world <= MORE else 4]
    number = int(rng.choice([number for number, call in enumerate(calls) if call.numbers]))
    again = [_tensor(rng, world, shapes[number], kinds[number], beside=beside) for beside in (False, True)]
    return [*ordered, *again, _tensor(rng, world, shapes[number], kinds[number - 1])]


def _tensor(rng: np.random.Generator, world: int, shape: tuple[int, ...], kind: str, beside: bool = False) -> Call:
    row = None if rng.integers(2) else int(rng.integers(3))
    given = [{"whole": _numbers(rng, _whole(shape, row), kind), "row": row} for _ in range(world)]
    own = _own(given[0])
    longest = -(-own.size // world)
    told = f"{'' if row is None else f'row {row} of a larger tensor, '}shape {shape}, {kind}"
    return Call(told, given, own.size, own.itemsize, longest, beside)


def _parts(rng: np.random.Generator, world: int) -> list[Call]:
    """Chunks of one length, some that are empty, and long ones whose lengths differ by one, twice at once."""
    calls = []
    kinds = ((3, 0, "float32"), (0, 1, _drawn(rng, KINDS)), (LARGE // 5, 1, "float64"), (400, 1, "int64"))
    for shortest, more, kind in kinds:
        lengths = [shortest + int(longer) for longer in rng.integers(0, more, world, endpoint=True)]
        given = [{"parts": [_numbers(rng, (length,), kind) for length in lengths]} for _ in range(world)]
        told = f"chunks of {lengths} numbers, {kind}"
        calls.append(Call(told, given, sum(lengths), np.dtype(kind).itemsize, max(lengths), beside=len(calls) == 3))
    return calls


def _wrong_sum(call: Call, left: Sequence[Table], rank: int) -> str:
    """What is wrong with the tensor that a rank was given, or with the rows beside it."""
    given, found = call.given[rank], np.asarray(left[rank]["whole"])
    right = given["whole"].copy()
    right[() if given["row"] is None else given["row"]] = _total([_own(one) for one in call.given])
    if reason := _differs(found, right, "the sum", given["whole"]):
        return reason
    own, first = _own(left[rank] | {"row": given["row"]}), _own(left[0] | {"row": call.given[0]["row"]})
    if own.tobytes() == first.tobytes():
        return ""
    return "the sum is not bit by bit the same as on rank 0: the ranks' models would drift apart"


def _differs(found: Any, right: Array, what: str, before: Array) -> str:
    """What is wrong with an array, in one sentence; "" where nothing is. before: what stood there before the call."""
    found = np.asarray(found)
    if (found.shape, found.dtype) != (right.shape, right.dtype):
        return f"{what} has shape {found.shape}, {found.dtype}, and not {right.shape}, {right.dtype}"
    near = _near(found, right)
    if near.all():
        return ""
    if _equal(found, before):
        return f"{what}: the tensor that was given is as it was before the call; the numbers must change in place"
    first = np.unravel_index(np.argmin(near), near.shape)
    form = ".9g" if found.dtype.kind == "f" else "d"
    told = f"the first is {found[first]:{form}} in place of {right[first]:{form}}"
    return f"{what}: {np.count_nonzero(~near)} of {right.size} numbers are wrong; {told}"


def _near(found: Array, right: Array) -> Array:
    kind = str(right.dtype)
    if not KINDS[kind]:
        return np.asarray(found == right)
    right = right.astype(np.float64)
    nearest = np.nan_to_num(KINDS[kind] * np.maximum(np.abs(right), 1000.0))
    return np.isclose(found.astype(np.float64), right, rtol=0.0, atol=nearest, equal_nan=True)


def _equal(one: Array, other: Array) -> bool:
    """Whether all numbers are the same; nan is the same as nan."""
    return np.array_equal(one, other, equal_nan=True)


def _no_views(call: Table, result: Table, lengths: list[int]) -> str | None:
    """What is wrong with the chunks of one tensor; None where nothing is."""
    own, found = _own(call), [np.asarray(chunk) for chunk in result["chunks"]]
    sizes = [chunk.size for chunk in found]
    if sorted(sizes, reverse=True) != lengths:
        return f"chunks of {sizes} numbers"
    if any(chunk.ndim != 1 for chunk in found):
        return f"chunks of shapes {[chunk.shape for chunk in found]}: they are not flat"
    if kinds := sorted({str(chunk.dtype) for chunk in found} - {str(own.dtype)}):
        return f"chunks of {', '.join(kinds)}"
    if not _equal(np.concatenate(found), own.ravel()):
        return "the chunks, one after the other, are not the tensor's numbers in their order"
    right = call["whole"].copy()
    right[() if call["row"] is None else call["row"]] = np.repeat(call["marks"], sizes).reshape(own.shape)
    if not _equal(result["whole"], right):
        return "what is written into the chunks does not arrive in the tensor: they are copies"
    return None


def _drawn(rng: np.random.Generator, given: Collection[T]) -> T:
    return list(given)[int(rng.integers(len(given)))]


def _whole(shape: tuple[int, ...], row: int | None) -> tuple[int, ...]:
    """The shape of the tensor that holds one of this shape as a row, or is it."""
    return shape if row is None else (3, *shape)


def _own(call: Table) -> Array:
    """The tensor of a call, in what holds it."""
    return np.asarray(call["whole"] if call["row"] is None else call["whole"][call["row"]])


def _cluster(world: int, bytes_per_second: float, latency_seconds: float, slow: dict[int, float]) -> Cluster:
    """Equal links but for the NICs of `slow`, by rank."""
    return Cluster.model_validate(
        {
            "workers": world, "bandwidth": f"{bytes_per_second!r} B/s", "latency": f"{latency_seconds!r} s",
            "nic": {rank: dict.fromkeys(("up", "down"), f"{speed!r} B/s") for rank, speed in slow.items()},
        }
    )  # fmt: skip


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    """Numbers that nobody can guess. No floating-point number holds a sum of those of type int64.

    Among ten floating-point numbers or more, one is nan and one inf, and the first of each row is -0.
    """
    if kind.startswith("float"):
        drawn = rng.uniform(-1000.0, 1000.0, shape)
        if drawn.size >= 10:
            drawn[..., 0] = -0.0  # on all ranks, and so in the sum
            drawn.flat[rng.choice(drawn.size, 2, replace=False)] = np.nan, np.inf
        return np.asarray(drawn, kind)
    limits = np.iinfo(kind)
    return np.asarray(rng.integers(limits.min // 16, limits.max // 16, shape, endpoint=True), kind)


def _total(arrays: Sequence[Array]) -> Array:
    return np.asarray(np.add.reduce([np.asarray(array) for array in arrays], dtype=arrays[0].dtype))


def _even_lengths(size: int, count: int) -> list[int]:
    """The longest first."""
    bounds = [size * number // count for number in range(count + 1)]
    return sorted((later - earlier for earlier, later in pairwise(bounds)), reverse=True)
