"""What lab 05 asks of tasks.py. Weights, batches, sizes and times are drawn from `testbed.rng`.

The space of the inputs:
* worlds of 1 to 8 ranks, each with results that are looked at; links so slow that buckets wait for each other, and
  fast ones;
* float64 and float32 models; matrices, vectors, single numbers, parameters without a number; two of one shape;
* layers that are frozen, that come twice in a model (tied), that a rank does not use, and that are not used in the
  order of the parameters, in another order on each rank; backwards of other lengths for each layer and rank;
* buckets of one parameter, of several and of all; bytes that just fill a bucket; a bucket of 400 kB and more;
* several updates, each of several batches; gradients that are kept for the next update; `no_sync` inside `no_sync`, and
  one that an error leaves;
* one wrapped model in a process, and one between two others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.data_parallel import data_parallel_step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from distsim.testbed import Run, Testbed

Array = NDArray[Any]
Part = Literal["results", "exchanges", "times"]  # of what a run is judged by, in this order

LAYERS, WIDTH = 6, 8
LARGE_WIDTHS = (320, 400)  # of a model whose buckets have some 100,000 numbers
# Orders of layers in a forward, on the first ranks out of order; further ranks have one that is drawn. When the first
# bucket leaves, one of two layers has waited for it, or all the others have, or two of one layer, and later two more.
OUT_OF_ORDER = ((0, 1, 4, 5, 2, 3), (5, 0, 1, 2, 3, 4), (2, 1, 0, 5, 4, 3))
SHORTEST, LONGEST = 0.020, 0.060  # seconds of one layer's backward
MOST_LATE = 0.001  # seconds; a question whether an all-reduce is over takes some microseconds
LINKS = {"slow": ("15 kB/s", "1 ms"), "fast": ("1 GB/s", "10 us"), "as backward": ("40 kB/s", "1 ms")}
SMALL_WORLDS = ((2, 4), (3, 5))
CLOSE = {"float64": 1e-9, "float32": 1e-4}
ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2}
AGAINST_THE_RULES = 0.5  # of the points are for right results with other exchanges, or other times, than asked for


@check(
    points=2,
    hint="In which order does backward make gradients? When is a bucket full, and what are its bytes?",
    how="Go through the parameters backwards; close a bucket once it holds bucket_bytes or more.",
)
def buckets_in_the_order_of_backward(testbed: Testbed) -> Finding:
    """Parameters of many sizes and types, some frozen; for buckets of one, of several and of all."""
    cases = []
    for bucket_bytes in (1, _whole(testbed, 200, 300), _whole(testbed, 40, 90), 10**6):
        shapes = [[_whole(testbed, 1, 50)] for _ in range(9)] + [[], [0], [5, 4]]
        dtypes = [str(dtype) for dtype in testbed.rng.choice(list(ITEM_BYTES), size=12)]
        order = testbed.rng.permutation(12)
        frozen = _some(testbed, 12, 4)
        cases.append(_bucket_case([shapes[place] for place in order], dtypes, frozen, bucket_bytes))
    alike = [[4], [2, 2]] * 4, ["float32"] * 8
    cases += [_bucket_case(*alike, [], 32), _bucket_case(*alike, [], 33)]  # which two just fill, or just do not
    cases.append(_bucket_case([[3], [4]], ["float32"] * 2, [0, 1], 8))
    expected = [_buckets(**case) for case in cases]

    def judge(run: Run) -> Finding | None:
        for case, right, found in zip(cases, expected, run.results[0]["buckets"], strict=True):
            if found != right:
                told = ", ".join(f"{one} {dtype}" for one, dtype in zip(case["shapes"], case["dtypes"], strict=True))
                where = f"shapes {told}; frozen {case['frozen']}; {case['bucket_bytes']} bytes"
                return Finding.of(observed=found, expected=right, passed=False, where=where)
        return None

    return _lost(testbed, "buckets", [{"cases": cases}], {"results"}, judge, expected) or _fine("as asked")


@check(
    points=3,
    hint="What does all_reduce give, and what should stand in .grad? Which gradients does your code write back?",
    how="Sum with all_reduce, divide by the world size, and write each part of the result back into its .grad.",
)
def gradients_are_the_mean(testbed: Testbed) -> Finding:
    """Against the mean of the ranks' own gradients: several updates, tied and frozen layers, all kinds of shapes."""
    for world, links, options in (
        (8, "slow", {"special": True, "frozen": 2, "tied": True, "others": True}),
        (7, "as backward", {"special": True, "dtype": "float32", "kept": True, "in_order": False}),
        (2, "fast", {"frozen": 1}),
        (1, "fast", {"frozen": 1, "special": True}),
    ):
        training = _Training.drawn(testbed, world, links, batches=[1, 1, 1], **options)  # type: ignore[arg-type]
        if lost := _lost_in(testbed, training, {"results"}):
            return lost
    return _fine("the mean over all ranks in every .grad, after every update")


@check(
    points=2,
    hint="Which hooks are not called on a rank that leaves a layer out? What do the other ranks wait for?",
    how="Send a bucket in finish() if a gradient of it never came; what is missing counts as zero.",
)
def layers_that_a_rank_does_not_use(testbed: Testbed) -> Finding:
    """Each rank leaves out other layers: it has no gradient there, and others have."""
    for world in (6, 3):
        training = _Training.drawn(testbed, world, "as backward", batches=[1, 1], skipping=True, in_order=world == 3)
        if lost := _lost_in(testbed, training, {"results"}):
            return lost
    return _fine("the mean over all ranks, also of layers that one of them does not use")


@check(
    points=2,
    hint="How many all-reduces does the network see in one step, and of how many bytes each?",
    how="One all_reduce for each bucket and step, of one flat tensor of the bucket's gradients.",
)
def one_all_reduce_for_each_bucket(testbed: Testbed) -> Finding:
    """The collectives that the network has seen, and their bytes, over several updates, for small and large buckets."""
    large = _Training.drawn(testbed, 2, "fast", batches=[1], dtype="float32", width=_whole(testbed, *LARGE_WIDTHS))
    small = _Training.drawn(testbed, _small_odd(testbed), "slow", batches=[1, 1, 1], frozen=1, dtype="float32")
    for training in (large, small):
        if lost := _lost_in(testbed, training, {"exchanges"}):
            return lost
    return _fine(f"in each step {_told(small.schedule().exchanges[: len(small.buckets)])}")


@check(
    points=3,
    hint="When does each bucket leave, and does backward go on meanwhile? The network sees both, in every step.",
    how="all_reduce(..., async_op=True) in the hook for each bucket that is whole and has its turn; wait() in finish.",
)
def communication_beside_backward(testbed: Testbed) -> Finding:
    """Each bucket leaves when it is whole and has its turn, and no backward waits, not even after the last bucket."""
    for layers_in_bucket, links, in_order in ((2, "slow", True), (1, "as backward", False), (3, "fast", True)):
        world = _small_even(testbed) if in_order else _small_odd(testbed)
        options = {"in_order": in_order, "layers_in_bucket": layers_in_bucket, "skipping": layers_in_bucket == 3}
        options["frozen"] = int(layers_in_bucket == 2)
        training = _Training.drawn(testbed, world, links, batches=[1, 1, 1], **options)  # type: ignore[arg-type]
        if lost := _lost_in(testbed, training, {"exchanges", "times"}):
            return lost
    return _fine("every bucket leaves when it is whole and has its turn, and no backward waits")


@check(
    points=2,
    hint="What happens to gradients inside no_sync, and what must be as before when it is left, in whatever way?",
    how="Inside, hooks send nothing and .grad adds up; try and finally put the old state back.",
)
def nothing_is_sent_inside_no_sync(testbed: Testbed) -> Finding:
    """Updates of several batches, one inside the other and one that an error leaves: all-reduces for the last alone."""
    for world, kept in ((4, False), (5, True)):
        options = {"kept": kept, "broken_off": True, "skipping": kept, "layers_in_bucket": 2 - kept}
        training = _Training.drawn(testbed, world, "slow", batches=[3, 3, 1, 2], **options)  # type: ignore[arg-type]
        if lost := _lost_in(testbed, training, {"results", "exchanges"}):
            return lost
    return _fine("one all_reduce for each bucket of the last batch of an update, and the mean of the sums")


@check(
    points=2,
    hint="What goes through one link, what happens side by side, and what does only one thread do at a time?",
    how="Copies and gradients of all other devices go through one link; only launching is serial, beside the forwards.",
)
def prediction_of_data_parallel(testbed: Testbed) -> Finding:
    """One device, and cases in which the interpreter or the device is the slower one."""
    uniform = testbed.rng.uniform
    pace = [(1, 0.001), (1, 0.2), (4, 0.001), (8, uniform(0.01, 0.02)), (2, 0.0), (3, uniform(0.02, 0.03)), (2, 0.1)]
    cases = [
        {
            "devices": devices, "forward": uniform(0.01, 0.05), "backward": uniform(0.02, 0.1),
            "model_bytes": uniform(1e6, 1e8), "bytes_per_second": uniform(1e9, 1e10), "interpreter": interpreter,
        }
        for devices, interpreter in pace
    ]  # fmt: skip
    expected = [_data_parallel(**case) for case in cases]

    def judge(run: Run) -> Finding | None:
        for case, right, found in zip(cases, expected, run.results[0]["seconds"], strict=True):
            if not np.isclose(found, right, rtol=1e-6):
                where = ", ".join(f"{name} {value:g}" for name, value in case.items())
                return _wrong(f"{1e3 * found:.2f} ms", f"{1e3 * right:.2f} ms", where)
        return None

    told = ", ".join(f"{1e3 * one:.2f} ms" for one in expected)
    return _lost(testbed, "data_parallel", [{"cases": cases}], {"results"}, judge, told) or _fine(told)


@dataclass(frozen=True)
class _Schedule:
    """What the network should see. spans: of each layer's backward, by rank; end: of the last update.

    exchanges: kind and bytes of each collective. posted: when each rank begins it, in the same order.
    """

    exchanges: Sequence[tuple[str, int]] = ()
    posted: Sequence[Sequence[float]] = ()
    spans: Sequence[Sequence[tuple[float, float]]] = ()
    end: float = 0.0


@dataclass(frozen=True)
class _Training:
    """A model, and what each rank computes with it. paths, seconds and inputs are by rank."""

    links: Cluster
    dtype: str
    weights: list[Array]
    frozen: list[int]
    bucket_bytes: int
    batches: list[int]
    kept: bool
    broken_off: bool
    others: bool
    paths: list[list[int]]
    seconds: list[list[float]]
    inputs: list[list[Array]]

    @classmethod
    def drawn(
        cls, testbed: Testbed, world: int, links: str, *, batches: list[int], dtype: str = "float64", frozen: int = 0,
        layers_in_bucket: int = 2, special: bool = False, tied: bool = False, in_order: bool = True,
        skipping: bool = False, kept: bool = False, broken_off: bool = False, others: bool = False, width: int = WIDTH,
    ) -> _Training:  # fmt: skip
        """special: with parameters of other shapes than matrices. skipping: whether ranks leave layers out.

        frozen: how many layers. The first is among them, so backward goes on when all buckets have left.
        """
        rng = testbed.rng
        shapes = [(width, width)] * LAYERS
        if special:
            for place, shape in zip(_some(testbed, LAYERS, 3), ((width,), (), (0,)), strict=True):
                shapes[place] = shape  # type: ignore[assignment]
        weights = [np.asarray(rng.normal(size=shape) / width ** (len(shape) / 4), dtype=dtype) for shape in shapes]
        drawn = [rng.permutation(LAYERS).tolist() for _ in range(world)]
        orders = [range(LAYERS)] * world if in_order else [*OUT_OF_ORDER, *drawn][:world]
        paths = [list(order) for order in orders]
        if tied:
            again = _whole(testbed, 1, LAYERS)
            for own in paths:
                own.insert(again, own[-1])
        if skipping:
            for own, layer in zip(paths, rng.permutation(LAYERS).tolist() * 2, strict=False):
                own.remove(layer)
        bandwidth, latency = LINKS[links]
        return cls(
            links=Cluster.model_validate({"workers": world, "bandwidth": bandwidth, "latency": latency}),
            dtype=dtype,
            weights=weights,
            frozen=[0, *(1 + other for other in _some(testbed, LAYERS - 1, frozen - 1))] if frozen else [],
            bucket_bytes=layers_in_bucket * width * width * ITEM_BYTES[dtype],
            batches=batches,
            kept=kept,
            broken_off=broken_off,
            others=others,
            paths=paths,
            seconds=[rng.uniform(SHORTEST, LONGEST, size=len(own)).tolist() for own in paths],
            inputs=[[rng.normal(size=(4, width)).astype(dtype) for _ in range(sum(batches))] for _ in paths],
        )

    @property
    def world(self) -> int:
        """The number of ranks."""
        return len(self.paths)

    @property
    def buckets(self) -> list[list[int]]:
        """As make_buckets should make them: numbers of parameters."""
        shapes = [list(weight.shape) for weight in self.weights]
        return _buckets(shapes, [self.dtype] * LAYERS, self.frozen, self.bucket_bytes)

    def arguments(self) -> list[dict[str, Any]]:
        """For the driver, by rank."""
        return [
            {
                "weights": self.weights, "path": path, "seconds": seconds, "frozen": self.frozen, "inputs": inputs,
                "bucket_bytes": self.bucket_bytes, "batches": self.batches, "kept": self.kept,
                "broken_off": self.broken_off, "others": self.others,
            }
            for path, seconds, inputs in zip(self.paths, self.seconds, self.inputs, strict=True)
        ]  # fmt: skip

    def schedule(self) -> _Schedule:
        """Each bucket's all-reduce begins on a rank when it is whole and those before it have begun.

        A bucket with a gradient that never comes is whole when the rank's backward is over. Buckets travel one after
        the other, each from when the last rank has begun it, and an update is over when the last one has arrived.
        """
        sizes = [sum(self.weights[number].nbytes for number in bucket) for bucket in self.buckets]
        link = (self.world, self.links.bandwidth_bytes_per_second, self.links.latency_seconds)
        now, spans, posted = [0.0] * self.world, [[] for _ in self.paths], []  # type: ignore[var-annotated]
        for count in self.batches:
            began = []
            for rank, (path, seconds) in enumerate(zip(self.paths, self.seconds, strict=True)):
                for _ in range(count):
                    there = {}
                    for number, took in zip(reversed(path), reversed(seconds), strict=True):
                        spans[rank].append((now[rank], now[rank] + took))
                        now[rank] += took
                        there[number] = now[rank]  # of a layer that comes twice, when the first one's backward is over
                whole = [max(there.get(number, now[rank]) for number in bucket) for bucket in self.buckets]
                began.append(np.maximum.accumulate(whole).tolist())
            end = 0.0
            for size, times in zip(sizes, zip(*began, strict=True), strict=True):
                posted.append(times)
                end = max(end, *times) + ring_all_reduce_seconds(size, *link)
            now = [max(one, end) for one in now]
        return _Schedule([("all_reduce", size) for size in sizes] * len(self.batches), posted, spans, max(now))

    def means(self) -> list[list[Array | None]]:
        """After each update, the mean of each layer's gradients over all ranks; None for a frozen layer."""
        found: list[list[Array | None]] = []
        for update, count in enumerate(self.batches):
            first = sum(self.batches[:update])
            total = [np.zeros(weight.shape) for weight in self.weights]
            for path, inputs in zip(self.paths, self.inputs, strict=True):
                for batch in inputs[first : first + count]:
                    for number, gradient in _gradients(self.weights, path, batch):
                        total[number] = total[number] + gradient / self.world
            if self.kept and found:
                total = [mean + old if old is not None else mean for mean, old in zip(total, found[-1], strict=True)]
            found.append([None if number in self.frozen else mean for number, mean in enumerate(total)])
        return found


def _gradients(weights: Sequence[Array], path: Sequence[int], inputs: Array) -> list[tuple[int, Array]]:
    """Of the sum of squares of the outputs, for each place of the path: the layer, and its gradient there."""
    values = [inputs.astype(np.float64)]
    for number in path:
        weight = weights[number].astype(np.float64)
        last = values[-1]
        product = last @ weight if weight.ndim == 2 else last * weight if weight.size else last
        values.append(np.tanh(product))
    found = []
    back = 2 * values[-1]
    for number, before, after in zip(reversed(path), reversed(values[:-1]), reversed(values[1:]), strict=True):
        weight = weights[number].astype(np.float64)
        back = back * (1 - after**2)
        if weight.ndim == 2:
            found.append((number, before.T @ back))
            back = back @ weight.T
        elif weight.size:
            found.append((number, (before * back).sum(axis=0 if weight.ndim else None)))
            back = back * weight
        else:
            found.append((number, np.zeros(weight.shape)))
    return found


def _lost_in(testbed: Testbed, training: _Training, asked: Collection[Part]) -> Finding | None:
    """Why points are lost in this training, if any are."""
    beside = " (two other models are wrapped in the same process)" if training.others else ""
    expected = f"the mean over {training.world} ranks in every .grad{beside}"
    means = training.means()

    def judge(run: Run) -> Finding | None:
        for rank, result in enumerate(run.results):
            for update, (found, right) in enumerate(zip(result["gradients"], means, strict=True)):
                for layer, (gradient, mean) in enumerate(zip(found, right, strict=True)):
                    if not _close(gradient, mean, training.dtype):
                        where = f"rank {rank} of {training.world}, update {update}, layer {layer}"
                        return _wrong(_about(gradient, mean), expected, where)
            if result["swallowed"]:
                return _wrong("an error inside no_sync ends there", "the error goes on to the caller", f"rank {rank}")
            if any(not np.array_equal(one, own) for one, own in zip(result["weights"], training.weights, strict=True)):
                return _wrong("parameters were changed", "only gradients change", f"rank {rank}")
            if result["graphs"]:
                observed = "a .grad requires a gradient itself, so the history of all updates is kept in memory"
                return _wrong(observed, "a .grad without a history, as backward makes it (`detach`)", f"rank {rank}")
        return None

    schedule, links = training.schedule(), training.links
    return _lost(testbed, "train", training.arguments(), asked, judge, expected, schedule=schedule, links=links)


def _lost(
    testbed: Testbed,
    function: str,
    arguments: Sequence[dict[str, Any]],
    asked: Collection[Part],
    judge: Callable[[Run], Finding | None],
    expected: object,
    *,
    schedule: _Schedule | None = None,
    links: Cluster | None = None,
) -> Finding | None:
    """Why points are lost by this run, if any are. Every run of the student's code is judged here.

    asked: what the check is about; a fault there costs all of its points. The exchanges and their times must be those
    of the schedule in every run; where the check is about something else, they cost a part of its points.
    """
    run = testbed.run(function, arguments=arguments, cluster=links)
    if run.failure:
        return Finding.failed(run, expected)
    due = schedule or _Schedule(spans=[[]] * len(arguments))
    if "results" in asked and (finding := judge(run)) is not None:
        return finding
    for part, about in (("exchanges", _about_exchanges), ("times", _about_times)):
        if (told := about(run, due)) is not None:
            observed, rule, where = told
            share = 0.0 if part in asked else AGAINST_THE_RULES
            right = "right results, but " if share and "results" in asked else ""
            return Finding.of(observed=right + observed, expected=rule, share=share, where=where)
    return None


def _about_exchanges(run: Run, schedule: _Schedule) -> tuple[str, str, str] | None:
    """What was observed and expected, and where, if the network has carried something else than it should."""
    seen = [(entry.kind, entry.num_bytes) for entry in run.log.collectives]
    if seen == list(schedule.exchanges) and not run.log.messages:
        return None
    messages = f"{len(run.log.messages)} messages and " if run.log.messages else ""
    return f"{messages}{_told(seen)}", f"{_told(schedule.exchanges)}, in this order", f"{len(run.results)} ranks"


def _about_times(run: Run, schedule: _Schedule) -> tuple[str, str, str] | None:
    """As `_about_exchanges`, if a rank computes or begins an all-reduce at another time than it should.

    The time of a step alone could be made up by a rank that leaves out its computing, and waits in the end.
    """
    for rank, spans in enumerate(schedule.spans):
        own = [(busy.start_seconds, busy.end_seconds) for busy in run.log.busy if busy.rank == rank]
        where = f"rank {rank} of {len(run.results)}"
        for number, (entry, due) in enumerate(zip(run.log.collectives, schedule.posted, strict=True)):
            if abs(entry.posted_seconds[rank] - due[rank]) > MOST_LATE:
                observed = f"all-reduce {number} begins at {1e3 * entry.posted_seconds[rank]:.1f} ms"
                return observed, f"{1e3 * due[rank]:.1f} ms: its bucket is whole then, and has its turn", where
        if len(own) != len(spans) or not np.allclose(own, spans, rtol=0.0, atol=MOST_LATE):
            return "backward waits, or does not compute all of its layers", "layers one right after the other", where
    if abs(run.seconds - schedule.end) > MOST_LATE:
        return f"the last update ends at {1e3 * run.seconds:.1f} ms", f"{1e3 * schedule.end:.1f} ms", "all ranks"
    return None


def _told(exchanges: Sequence[tuple[str, int]]) -> str:
    """Equal exchanges that follow each other are counted."""
    runs = [(f"{kind} of {num_bytes} bytes", len(list(run))) for (kind, num_bytes), run in groupby(exchanges)]
    return ", ".join(f"{count} x {one}" if count > 1 else one for one, count in runs) or "no exchange"


def _close(gradient: Any, mean: Array | None, dtype: str) -> bool:
    if mean is None or gradient is None:
        return gradient is None and mean is None
    alike = gradient.shape == mean.shape and gradient.dtype == dtype
    return alike and np.allclose(gradient, mean, rtol=CLOSE[dtype], atol=CLOSE[dtype])


def _about(gradient: Any, mean: Array | None) -> str:
    if gradient is None:
        return "no gradient"
    if mean is None:
        return "a gradient for a frozen layer"
    if gradient.shape != mean.shape:
        return f"a gradient of shape {gradient.shape}, and the layer has {mean.shape}"
    ratio = np.linalg.norm(gradient) / max(np.linalg.norm(mean), 1e-300)
    return f"a {gradient.dtype} gradient whose length is {ratio:.3g} times the mean's"


def _bucket_case(shapes: list[list[int]], dtypes: list[str], frozen: list[int], bucket_bytes: int) -> dict[str, Any]:
    return {"shapes": shapes, "dtypes": dtypes, "frozen": frozen, "bucket_bytes": bucket_bytes}


def _buckets(shapes: list[list[int]], dtypes: list[str], frozen: list[int], bucket_bytes: int) -> list[list[int]]:
    """As make_buckets should make them: numbers of parameters."""
    found: list[list[int]] = []
    held = bucket_bytes
    for number in reversed(range(len(shapes))):
        if number in frozen:
            continue
        if bucket_bytes <= held:
            found.append([])
            held = 0
        found[-1].append(number)
        held += int(np.prod(shapes[number])) * ITEM_BYTES[dtypes[number]]
    return found


def _data_parallel(
    devices: int, forward: float, backward: float, model_bytes: float, bytes_per_second: float, interpreter: float
) -> float:
    return data_parallel_step(
        devices, forward, backward, model_bytes, 0.0, 0.0, bytes_per_second, 0.0, interpreter
    ).seconds


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong(observed: str, expected: str, where: str) -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where)


def _whole(testbed: Testbed, least: int, below: int) -> int:
    return int(testbed.rng.integers(least, below))


def _some(testbed: Testbed, below: int, count: int) -> list[int]:
    """So many different numbers from 0 to below - 1."""
    return sorted(testbed.rng.choice(below, size=count, replace=False).tolist())


def _small_even(testbed: Testbed) -> int:
    return int(testbed.rng.choice(SMALL_WORLDS[0]))


def _small_odd(testbed: Testbed) -> int:
    return int(testbed.rng.choice(SMALL_WORLDS[1]))
