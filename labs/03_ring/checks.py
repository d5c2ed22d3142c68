"""What lab 03 asks of tasks.py. Numbers are drawn anew for every run, and each rank is given its own alone.

What a rank sent, and when, is what passed the testbed's network; the times are virtual, so they are exact.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory import collectives as theory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distsim.testbed import Run, Testbed

    Array = np.ndarray[Any, Any]

BANDWIDTH = 125e6  # bytes per second
LATENCY_SECONDS = 1e-4
BAND = 0.01  # of a time: virtual clocks do not tremble
ROUNDING = {"float32": 1e-6, "float64": 1e-12, "int64": 0.0}


@check(points=2, hint="Flatten without a copy (view), and cut into `count` pieces (tensor_split): some may be empty.")
def chunks_are_even_views(testbed: Testbed) -> Finding:
    """Shapes that the count does not divide, fewer numbers than chunks, a single number, none."""
    shapes = ((12,), 4), ((random.randrange(2, 5), 11), 4), ((2, 1), 5), ((), 3), ((0,), 2), ((7,), 1)
    cases = [{"tensor": _numbers(shape), "marks": _numbers((count,))} for shape, count in shapes]
    run = testbed.run("chunks", arguments=[{"cases": cases}])
    if run.failure:
        return Finding.failed(run, "flat chunks that share the tensor's memory")
    for (shape, count), case, result in zip(shapes, cases, run.results[0]["cases"], strict=True):
        lengths = _even_lengths(case["tensor"].size, count)
        if reason := _no_views(case, result, lengths):
            expected = f"flat chunks of {lengths} numbers (or so in another order), which share the tensor's memory"
            where = f"a tensor of shape {shape}, cut into {count}"
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
    return Finding.of(observed="even views", expected="even views", passed=True)


@check(
    points=2, hint="In round k, rank r adds what comes in to parts[r - 2 - k], and sends that one in the next round."
)
def each_rank_sums_its_chunk(testbed: Testbed) -> Finding:
    """Chunks of several lengths, and an empty one; two ranks and five."""
    for world, lengths in ((2, [6, 5]), (5, [3, 3, 0, 2, 2])):
        parts = [[_numbers((length,)) for length in lengths] for _ in range(world)]
        run = testbed.run("reduce_scatter", arguments=[{"parts": own} for own in parts], cluster=_cluster(world))
        expected = "on each rank r the sum of all ranks' parts[r], sent to right neighbours alone"
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            right = sum(own[rank] for own in parts)
            if reason := _differs(result["own"], right, f"parts[{rank}]"):
                return Finding.of(observed=reason, expected=expected, passed=False, where=f"rank {rank} of {world}")
        if reason := _beside_the_ring(run, world):
            return Finding.of(observed=reason, expected=expected, passed=False, where=f"{world} ranks")
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="In round k, rank r sends parts[r - k] and receives parts[r - k - 1]: what came in goes on.")
def every_rank_has_every_chunk(testbed: Testbed) -> Finding:
    """All but the own chunk hold other numbers at the start."""
    for world, lengths in ((2, [6, 5]), (5, [3, 3, 0, 2, 2])):
        parts = [[_numbers((length,)) for length in lengths] for _ in range(world)]
        run = testbed.run("all_gather", arguments=[{"parts": own} for own in parts], cluster=_cluster(world))
        expected = "on every rank, as parts[r], what rank r had there, sent to right neighbours alone"
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            for owner, part in enumerate(result["parts"]):
                if reason := _differs(part, parts[owner][owner], f"parts[{owner}]"):
                    return Finding.of(observed=reason, expected=expected, passed=False, where=f"rank {rank} of {world}")
        if reason := _beside_the_ring(run, world):
            return Finding.of(observed=reason, expected=expected, passed=False, where=f"{world} ranks")
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=3, hint="chunks, then reduce_scatter, then all_gather; buffers have the chunk's own type of numbers.")
def the_ring_sums(testbed: Testbed) -> Finding:
    """One to five ranks on the testbed, three on gloo; and tensors such as bytes and times are measured with."""
    finding = _sums(testbed, "ring_all_reduce", (1, 2, 5))
    if finding.share < 1.0:
        return finding
    for world, size in ((random.choice((3, 4, 5)), random.randrange(900, 6000)), (4, 100_000 * random.choice((1, 2)))):
        tensors = [_numbers((size,)) for _ in range(world)]
        run = _all_reduced(testbed, "ring_all_reduce", tensors)
        if run.failure:
            return Finding.failed(run, "the sum of all ranks' tensors on every rank")
        if (wrong := _wrong_sum(run, tensors)) is not None:
            return wrong
    return finding


@check(points=3, hint="2 (N - 1) rounds, and in each of them one chunk of S / N bytes from every rank to the next.")
def the_fewest_bytes(testbed: Testbed) -> Finding:
    """Sizes that the ranks divide, and sizes that they do not."""
    for world, rest in ((3, 0), (4, 2), (5, 0)):
        size = world * random.randrange(300, 1200) + rest
        tensors = [_numbers((size,)) for _ in range(world)]
        run = _all_reduced(testbed, "ring_all_reduce", tensors)
        num_bytes = tensors[0].nbytes
        per_rank = theory.all_reduce_bytes_per_worker(num_bytes, world)
        expected = f"from each rank to its right neighbour {2 * (world - 1)} messages, about {per_rank:.0f} bytes"
        where = f"{world} ranks, {num_bytes} bytes"
        if run.failure:
            return Finding.failed(run, expected)
        if reason := _beside_the_ring(run, world):
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
        uneven = 2 * (world - 1) * tensors[0].itemsize  # a number more or less in each message
        for rank in range(world):
            messages = [message.num_bytes for message in run.log.messages if message.source == rank]
            if len(messages) != 2 * (world - 1) or not abs(sum(messages) - per_rank) < max(uneven, 1):
                observed = f"{len(messages)} messages, {sum(messages)} bytes"
                return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank} of {where}")
        all_bytes = round(world * per_rank)
        if (sent := sum(map(run.log.bytes_sent, range(world)))) != all_bytes:
            expected = f"{all_bytes} bytes from all ranks together"
            return Finding.of(observed=f"{sent} bytes", expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=3, hint="In a round every rank sends and receives at the same time: nobody waits for a turn.")
def the_time_of_a_ring(testbed: Testbed) -> Finding:
    """Equal links, many small messages, and one slow NIC, at whose pace all go."""
    slow = BANDWIDTH / random.uniform(3.0, 5.0)
    for world, size, slowest in ((4, 200_000, BANDWIDTH), (5, 500, BANDWIDTH), (4, 100_000, slow)):
        tensors = [_numbers((size,)) for _ in range(world)]
        exception = {} if slowest == BANDWIDTH else {random.randrange(world): slowest}
        run = _all_reduced(testbed, "ring_all_reduce", tensors, exception)
        seconds = theory.ring_all_reduce_seconds(tensors[0].nbytes, world, slowest, LATENCY_SECONDS)
        links = f"the NIC of rank {next(iter(exception))} at {slowest / 1e6:.1f} MB/s" if exception else "equal links"
        where = f"{world} ranks, {tensors[0].nbytes} bytes, {links}"
        expected = f"{1e3 * seconds:.3f} ms, by the formula, in messages to right neighbours"
        if run.failure:
            return Finding.failed(run, expected)
        if reason := _beside_the_ring(run, world):
            return Finding.of(observed=reason, expected=expected, passed=False, where=where)
        if abs(run.seconds - seconds) > BAND * seconds:
            observed = f"{1e3 * run.seconds:.3f} ms"
            return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=3, hint="Rank 0 receives N - 1 tensors, adds its own, and only then sends the sum N - 1 times.")
def the_server_sums(testbed: Testbed) -> Finding:
    """What it leaves, what its link carries, and how long that takes: messages at once, or one after the other."""
    finding = _sums(testbed, "server_all_reduce", (1, 4))
    if finding.share < 1.0:
        return finding
    world, tensors = 4, [_numbers((100_000,)) for _ in range(4)]
    run = _all_reduced(testbed, "server_all_reduce", tensors)
    num_bytes = tensors[0].nbytes
    expected = f"one message of {num_bytes} bytes to rank 0 from each of the others, and one back"
    if run.failure:
        return Finding.failed(run, expected)
    if (wrong := _wrong_sum(run, tensors)) is not None:
        return wrong
    if reason := _beside_the_server(run, world, num_bytes):
        return Finding.of(observed=reason, expected=expected, passed=False, where=f"{world} ranks")
    least = theory.parameter_server_seconds(num_bytes, world, BANDWIDTH, LATENCY_SECONDS, colocated=True)
    most = least + 2 * (world - 2) * LATENCY_SECONDS
    expected = f"{1e3 * least:.2f} to {1e3 * most:.2f} ms"
    passed = least * (1 - BAND) <= run.seconds <= most * (1 + BAND)
    where = f"{world} ranks, {num_bytes} bytes"
    return Finding.of(observed=f"{1e3 * run.seconds:.2f} ms", expected=expected, passed=passed, where=where)


@check(points=2, hint="Count rounds; then what one message costs in a round, or all messages that share rank 0's link.")
def predictions(testbed: Testbed) -> Finding:
    """Random sizes, ranks and links."""
    cases = [
        {
            "num_bytes": random.randrange(10**3, 10**8), "ranks": ranks,
            "bytes_per_second": random.uniform(1e7, 1e9), "latency_seconds": random.uniform(1e-5, 1e-2),
        }
        for ranks in (2, 3, random.randrange(4, 16), random.randrange(16, 65))
    ]  # fmt: skip
    run = testbed.run("predictions", arguments=[{"cases": cases}])
    if run.failure:
        return Finding.failed(run, "a number from each of the four formulas")
    found = run.results[0]
    for case, sizes, seconds in zip(cases, found["bytes"], found["seconds"], strict=True):
        links = tuple(case.values())
        right = {
            "ring_bytes": (sizes[0], theory.all_reduce_bytes_per_worker(*links[:2]), "bytes"),
            "server_bytes": (sizes[1], (case["ranks"] - 1) * case["num_bytes"], "bytes"),
            "ring_seconds": (seconds[0], theory.ring_all_reduce_seconds(*links), "s"),
            "server_seconds": (seconds[1], theory.parameter_server_seconds(*links, colocated=True), "s"),
        }
        for name, (observed, expected, unit) in right.items():
            if not abs(observed - expected) <= 1e-6 * expected:
                return Finding.of(
                    observed=f"{observed:.6g} {unit}", expected=f"{expected:.6g} {unit}", passed=False,
                    where=f"{name} of {case['num_bytes']} bytes, {case['ranks']} ranks, "
                    f"{case['bytes_per_second'] / 1e6:.1f} MB/s, {1e3 * case['latency_seconds']:.3f} ms",
                )  # fmt: skip
    return Finding.of(observed="all four as the theory has them", expected="the same", passed=True)


def _no_views(case: dict[str, Array], result: dict[str, Any], lengths: list[int]) -> str | None:
    """What is wrong with the chunks of one tensor; None where nothing is."""
    tensor, found = case["tensor"], [np.asarray(chunk) for chunk in result["chunks"]]
    sizes = [chunk.size for chunk in found]
    if sorted(sizes, reverse=True) != lengths:
        return f"chunks of {sizes} numbers"
    if any(chunk.ndim != 1 for chunk in found):
        return f"chunks of shapes {[chunk.shape for chunk in found]}: they are not flat"
    if not np.array_equal(np.concatenate(found), tensor.ravel()):
        return "the chunks, one after the other, are not the tensor's numbers in their order"
    if not np.array_equal(result["tensor"], np.repeat(case["marks"], sizes).reshape(tensor.shape)):
        return "what is written into the chunks does not arrive in the tensor: they are copies"
    return None


def _sums(testbed: Testbed, function: str, worlds: Sequence[int]) -> Finding:
    """In place, on every rank the same, for several shapes and types of numbers; on gloo too."""
    expected = "the sum of all ranks' tensors on every rank, in place, with shape and type as they were"
    for world, backend in (*((world, "testbed") for world in worlds), (3, "gloo")):
        kinds = _several()
        given = [[_numbers(*kind) for kind in kinds] for _ in range(world)]
        arguments = [{"function": function, "tensors": tensors} for tensors in given]
        run = testbed.run("all_reduce", arguments=arguments, backend=backend)
        if run.failure:
            return Finding.failed(run, expected)
        for number, right in enumerate(sum(column) for column in zip(*given, strict=True)):
            shape, kind = kinds[number]
            what = f"the sum of tensors of shape {shape}, {kind}"
            found = [np.asarray(result["tensors"][number]) for result in run.results]
            for rank, tensor in enumerate(found):
                reason = _differs(tensor, np.asarray(right, kind), what)
                if not reason and not np.array_equal(tensor, found[0]):
                    reason = f"{what} is not bit by bit the same as on rank 0: the ranks' models would drift apart"
                if reason:
                    where = f"rank {rank} of {world} on {backend}"
                    return Finding.of(observed=reason, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong_sum(run: Run, tensors: Sequence[Array]) -> Finding | None:
    """What a rank has that is not the sum. Whoever knows a measured tensor by its shape must add it up all the same."""
    right = np.asarray(sum(tensors), tensors[0].dtype)
    for rank, result in enumerate(run.results):
        if reason := _differs(result["tensors"][0], right, f"the sum of tensors of shape {right.shape}, {right.dtype}"):
            expected = "the sum of all ranks' tensors on every rank"
            return Finding.of(observed=reason, expected=expected, passed=False, where=f"rank {rank} of {len(tensors)}")
    return None


def _all_reduced(
    testbed: Testbed, function: str, tensors: Sequence[Array], slow: dict[int, float] | None = None
) -> Run:
    arguments = [{"function": function, "tensors": [tensor]} for tensor in tensors]
    return testbed.run("all_reduce", arguments=arguments, cluster=_cluster(len(tensors), slow or {}))


def _cluster(world: int, slow: dict[int, float] | None = None) -> Cluster:
    """Equal links but for the NICs of `slow`, by rank."""
    return Cluster.model_validate(
        {
            "workers": world, "bandwidth": f"{BANDWIDTH!r} B/s", "latency": f"{LATENCY_SECONDS!r} s",
            "nic": {rank: dict.fromkeys(("up", "down"), f"{speed!r} B/s") for rank, speed in (slow or {}).items()},
        }
    )  # fmt: skip


def _numbers(shape: tuple[int, ...], kind: str = "float32") -> Array:
    """Numbers that nobody can guess."""
    generator = np.random.default_rng()
    if kind == "int64":  # no floating-point number holds such a sum
        return np.asarray(generator.integers(-(2**60), 2**60, shape))
    return np.asarray(generator.uniform(-1000.0, 1000.0, shape), kind)


def _several() -> list[tuple[tuple[int, ...], str]]:
    """The shapes and types of one run: some that no number of ranks divides, fewer numbers than ranks."""
    shape = (7, 11, random.randrange(13, 70))
    return [(shape, "float32"), ((31,), "float64"), ((5, 3), "int64"), ((2,), "float32"), ((), "float64")]


def _even_lengths(size: int, count: int) -> list[int]:
    """The longest first."""
    bounds = [size * number // count for number in range(count + 1)]
    return sorted((later - earlier for earlier, later in pairwise(bounds)), reverse=True)


def _differs(found: Array, right: Array, what: str) -> str | None:
    """What is wrong with an array, in one sentence; None where nothing is."""
    found, right = np.asarray(found), np.asarray(right)
    if (found.shape, found.dtype) != (right.shape, right.dtype):
        return f"{what} has shape {found.shape}, {found.dtype}, and not {right.shape}, {right.dtype}"
    near = np.abs(found - right) <= ROUNDING[str(right.dtype)] * np.maximum(np.abs(right), 1000.0)
    if near.all():
        return None
    return f"{np.count_nonzero(~near)} of {right.size} numbers of {what} are wrong"


def _beside_the_ring(run: Run, world: int) -> str | None:
    """What passed the network and was no message to a right neighbour."""
    if run.log.collectives:
        return _called(run)
    for message in run.log.messages:
        if message.target != (message.source + 1) % world:
            return f"rank {message.source} sent to rank {message.target}"
    return None


def _beside_the_server(run: Run, world: int, num_bytes: int) -> str | None:
    """What passed the network if it was not one whole tensor each way between rank 0 and each of the others."""
    if run.log.collectives:
        return _called(run)
    sent = sorted((message.source, message.target, message.num_bytes) for message in run.log.messages)
    if sent == sorted(way for other in range(1, world) for way in ((0, other, num_bytes), (other, 0, num_bytes))):
        return None
    into = [size for _, target, size in sent if target == 0]
    out = [size for source, _, size in sent if source == 0]
    return (
        f"{len(into)} messages, {sum(into)} bytes, to rank 0, {len(out)} messages, {sum(out)} bytes, from it, and "
        f"{len(sent) - len(into) - len(out)} messages between others"
    )


def _called(run: Run) -> str:
    kinds = sorted({collective.kind for collective in run.log.collectives})
    return f"collectives of torch.distributed did the work: {', '.join(kinds)}"
