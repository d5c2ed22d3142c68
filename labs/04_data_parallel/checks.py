"""What lab 04 asks of tasks.py. Values, gradients, batches and seeds are drawn anew; only their owner has them."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check
from distsim.theory.collectives import ring_all_reduce_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distsim.testbed import Run, Testbed

Array = NDArray[np.float64]
Batch = tuple[Array, Array]  # inputs and targets

CLOSE = 1e-9  # double precision loses far less, the smallest mistake far more
WIDTH = 8  # numbers in one sample of the small network
OPTIMIZERS = ("SGD with momentum", "Adam")  # sums in place of means pass under Adam, means of parameters under SGD
MOST_FOLLOWING = 0.2  # of a shuffled share's samples stand before the same one as in another order
FLAG_BYTES = 256  # for what is told beside the gradients, such as the number of samples


@check(points=2, hint="Broadcast every parameter from rank 0, and then every buffer: model.buffers() has them.")
def one_start(testbed: Testbed) -> Finding:
    """Weights and buffers of several types, a frozen one, two tied ones; on the testbed and on gloo."""
    expected = "rank 0's weights and buffers on every rank, in the parameters that were there before"
    for world, backend in ((2, "testbed"), (3, "gloo")):
        states = [_state() for _ in range(world)]
        arguments = [{**state, "frozen": 1, "tied": [2, 3]} for state in states]
        run = testbed.run("same_parameters", arguments=arguments, backend=backend)
        if run.failure:
            return Finding.failed(run, expected)
        for rank, result in enumerate(run.results):
            where = f"rank {rank} of {world}"
            for kind in ("weights", "buffers"):
                for place, right in enumerate(states[0][kind]):
                    if right is None or _same(result[kind][place], right):
                        continue
                    name = "frozen weight" if kind == "weights" and place == 1 else kind[:-1]
                    observed = f"the {name} of layer {place} is not rank 0's"
                    return Finding.of(observed=observed, expected=expected, passed=False, where=where)
            if not result["same_objects"]:
                observed = "the model has other parameters than before: its optimizer does not know them"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(points=2, hint="Make the same order on every rank, fill it up, then take every N-th place from your rank on.")
def shares_disjoint_and_complete(testbed: Testbed) -> Finding:
    """Counts that the ranks divide or not, fewer samples than ranks; sizes and repeats as torch's own sampler has."""
    for world in (2, 5):
        counts = [world * random.randrange(40, 60), world * random.randrange(40, 60) + 1, world + 2, world - 1, 1]
        arguments = [{"counts": counts, "seed": secrets.randbelow(10**6), "epochs": [0, 3]}] * world
        run = testbed.run("shares", arguments=arguments)
        if run.failure:
            return Finding.failed(run, "shares of one size which are all samples together")
        torchs = testbed.run("shares_of_torch", arguments=arguments, student=False)
        for place, count in enumerate(counts):
            for number, epoch in enumerate((0, 3)):
                right = _Shares.of(torchs, place, number)
                found = _Shares.of(run, place, number)
                if not found.fits(right, count):
                    where = f"{count} samples, {world} ranks, epoch {epoch}"
                    return Finding.of(observed=found.told(count), expected=right.told(count), passed=False, where=where)
    return Finding.of(observed="as DistributedSampler", expected="as DistributedSampler", passed=True)


@check(points=2, hint="Seed a generator of your own with seed + epoch; torch.randperm takes one.")
def new_order_each_epoch(testbed: Testbed) -> Finding:
    """Shuffled in every epoch, over all ranks; the same order again for the same epoch, and no other."""
    world, count, epochs = 3, random.randrange(300, 400) * 3, [0, 1, 6]
    run = testbed.run(
        "orders", arguments=[{"count": count, "seed": secrets.randbelow(10**6), "epochs": epochs}] * world
    )
    expected = "another order of the samples in each epoch, and the same one for the same epoch and seed"
    if run.failure:
        return Finding.failed(run, expected)
    for rank, result in enumerate(run.results):
        observed = _about_orders(result, epochs)
        if observed:
            return Finding.of(observed=observed, expected=expected, passed=False, where=f"rank {rank} of {world}")
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=3, hint="A rank with n of all M samples counts n / M: scale the gradient by that, then all_reduce the sum."
)
def mean_gradients(testbed: Testbed) -> Finding:
    """Random gradients that only their rank has, from batches of different sizes; on the testbed and on gloo."""
    shapes = [(3, 4), (5,), (), (2, 3, 2)]
    for world, backend in ((2, "testbed"), (4, "testbed"), (3, "gloo")):
        samples = random.sample(range(1, 40), world)
        gradients = [_normal(shapes) for _ in range(world)]
        run = _averaged(testbed, gradients, samples, backend=backend)
        finding = _judged(run, gradients, samples)
        if finding.share < 1.0:
            return finding
    return finding


@check(
    points=2, hint="Go through model.parameters(): it has tied ones once. Skip what is frozen; fill in zeros for None."
)
def frozen_and_tied(testbed: Testbed) -> Finding:
    """Layers 1 and 5 are frozen, 1 with an old gradient; 2 and 4 are tied; 3 has a gradient on one rank alone."""
    shapes = [(3, 4), (6,), (4, 4), (2, 5), (4, 4), (3,)]
    for world in (2, 3):
        gradients: list[list[Array | None]] = [[*_normal(shapes)] for _ in range(world)]
        without = set(random.sample(range(world), world - 1))
        for rank, own in enumerate(gradients):
            own[4], own[5] = own[2], None
            if rank in without:
                own[3] = None
        samples = random.sample(range(1, 40), world)
        run = _averaged(testbed, gradients, samples, shapes=shapes, frozen=[1, 5], tied=[2, 4])
        finding = _judged(run, gradients, samples, frozen=[1, 5], tied=[2, 4])
        if finding.share < 1.0:
            return finding
    return finding


@check(
    points=2, hint="all_reduce carries 2 (N - 1) / N of what it is given; a gather of everything carries N - 1 times."
)
def bytes_of_one_all_reduce(testbed: Testbed) -> Finding:
    """Without latency, the time on the links is the bytes of the busiest link over its bandwidth."""
    world, bytes_per_second = 4, 1e6
    shapes = [(100, 50), (100, 60), (80, 50), (100, 50), (50,)]  # 1 is frozen, 3 is tied to 0
    gradients = [_normal(shapes) for _ in range(world)]
    for own in gradients:
        own[3] = own[0]
    num_bytes = sum(own.nbytes for place, own in enumerate(gradients[0]) if place not in (1, 3))
    cluster = Cluster.model_validate({"workers": world, "bandwidth": f"{bytes_per_second} B/s", "latency": "0 s"})
    run = _averaged(testbed, gradients, [8] * world, frozen=[1], tied=[0, 3], cluster=cluster)
    right = bytes_per_second * ring_all_reduce_seconds(num_bytes, world, bytes_per_second, latency_seconds=0.0)
    expected = f"{right:,.0f} bytes on each link: an all-reduce of the {num_bytes:,} bytes of the gradients to average"
    if run.failure:
        return Finding.failed(run, expected)
    carried = run.seconds * bytes_per_second
    observed = f"{carried:,.0f} bytes on the busiest link{_of_which(run)}"
    return Finding.of(observed=observed, expected=expected, passed=abs(carried - right) <= FLAG_BYTES)


@check(points=3, hint="zero_grad, backward on the own part, average the gradients, and only then optimizer.step.")
def equal_to_one_process(testbed: Testbed) -> Finding:
    """After each of several steps with parts of different sizes, under two optimizers."""
    expected = "on every rank, after every step, the parameters of one process with the joined batch"
    for world, optimizer in zip((2, 3), OPTIMIZERS, strict=True):
        seed = secrets.randbelow(2**31)
        parts = [_parts(world) for _ in range(5)]
        arguments = [
            {"optimizer": optimizer, "seed": seed, **_columns([step[rank] for step in parts])} for rank in range(world)
        ]
        run = testbed.run("steps", arguments=arguments)
        if run.failure:
            return Finding.failed(run, expected)
        right, names = _one_process(testbed, optimizer, seed, [_joined(step) for step in parts])
        finding = _same_states(run, right, names, expected, f"{world} ranks, {optimizer}")
        if finding.share < 1.0:
            return finding
    return finding


@check(
    points=2, hint="same_parameters first; then, in every epoch, loader.sampler.set_epoch(epoch) before its batches."
)
def training_as_one_process(testbed: Testbed) -> Finding:
    """From different starts, over three epochs. The samples that a rank never takes are not known to it (NaN)."""
    expected = "on every rank, after every step of 3 epochs, the parameters of one process that begins as rank 0"
    world, batch, share = 3, 4, 10
    for optimizer in OPTIMIZERS:
        inputs, targets = _samples(world * share)
        orders = [_order(inputs, world, batch, share) for _ in range(3)]  # by epoch and rank
        seeds = [secrets.randbelow(2**31) for _ in range(world)]
        arguments = []
        for rank in range(world):
            own = [order[rank] for order in orders]
            others = sorted(set(range(world * share)).difference(*own))
            known = inputs.copy(), targets.copy()
            for array in known:
                array[others] = np.nan
            arguments.append(
                {
                    "optimizer": optimizer, "seed": seeds[rank], "inputs": known[0], "targets": known[1],
                    "orders": own, "batch": batch,
                }
            )  # fmt: skip
        run = testbed.run("training", arguments=arguments)
        if run.failure:
            return Finding.failed(run, expected)
        steps = [
            [sample for own in order for sample in own[first : first + batch]]
            for order in orders
            for first in range(0, share, batch)
        ]
        right, names = _one_process(testbed, optimizer, seeds[0], [(inputs[step], targets[step]) for step in steps])
        right = np.concatenate([right, right[-1:]])  # the driver's last one is from when all is over
        finding = _same_states(run, right, names, expected, f"{world} ranks, {optimizer}", extra=1)
        if finding.share < 1.0:
            return finding
    return finding


def _state() -> dict[str, Any]:
    """Weights and buffers of four layers, of the types that models have."""
    generator = np.random.default_rng(secrets.randbits(64))
    single = generator.normal(size=(4, 5)).astype(np.float32)
    weights = [generator.normal(size=(3, 4)), generator.normal(size=6), single, single]
    buffers = [generator.normal(size=4), None, generator.integers(0, 10**9, size=()), generator.normal(size=(2, 2)) > 0]
    return {"weights": weights, "buffers": buffers}


def _same(found: Any, right: Any) -> bool:
    return found is not None and np.asarray(found).dtype == right.dtype and np.array_equal(found, right)


class _Shares:
    """What the ranks take in one epoch."""

    def __init__(self, samples: list[list[int]], lengths: list[int]) -> None:
        self.sizes = [len(own) for own in samples]
        self.lengths = lengths
        self.taken = Counter(sample for own in samples for sample in own)
        self.repeats = sorted(self.taken.values())

    @classmethod
    def of(cls, run: Run, place: int, epoch: int) -> _Shares:
        """place: of the count among those that the run was given."""
        found = [result["shares"][place][epoch] for result in run.results]
        return cls([one["samples"] for one in found], [one["length"] for one in found])

    def fits(self, right: _Shares, count: int) -> bool:
        """Whether these are shares of the samples 0 to count - 1, sized and filled up as those are."""
        sizes = self.sizes == right.sizes == self.lengths
        return sizes and set(self.taken) == set(range(count)) and self.repeats == right.repeats

    def told(self, count: int) -> str:
        """In words."""
        nobodys = count - len(set(self.taken) & set(range(count)))
        most = max(self.taken.values(), default=0)
        lengths = "" if self.lengths == self.sizes else f" (len says {_listed(self.lengths)})"
        return (
            f"shares of {_listed(self.sizes)}{lengths}; {nobodys} samples are nobody's, "
            f"{sum(self.taken.values()) - len(self.taken)} places repeat a sample, none is taken more than {most} times"
        )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _about_orders(result: Any, epochs: list[int]) -> str | None:
    """What is wrong with one rank's orders."""
    orders = [epoch["samples"] for epoch in result["epochs"]]
    for own, epoch in zip(orders, epochs, strict=True):
        if len(own) < 2:
            return f"{len(own)} samples in epoch {epoch}"
        if len({later - earlier for earlier, later in pairwise(own)}) < len(own) / 4:
            return f"epoch {epoch} is not shuffled: it begins {_listed(own[:6])}"
    for first, second in ((0, 1), (1, 2), (0, 2)):
        if _following(orders[first], orders[second]) > MOST_FOLLOWING:
            return f"epochs {epochs[first]} and {epochs[second]} have one order: {_beginnings(orders, first, second)}"
        if set(orders[first]) == set(orders[second]):
            return f"the rank has the same samples in epochs {epochs[first]} and {epochs[second]}"
    if result["once_more"]["samples"] != orders[0]:
        return f"epoch {epochs[0]} has another order when it is gone through again"
    if result["taken_up_again"]["samples"] != orders[-1]:
        return f"a run that is taken up again at epoch {epochs[-1]} has another order there than the first run"
    if _following(result["other_seed"]["samples"], orders[0]) > MOST_FOLLOWING:
        return "another seed gives the same order"
    return "the sampler has changed the state of torch's own random numbers" if result["disturbed"] else None


def _following(one: list[int], other: list[int]) -> float:
    """Which share of the samples stands before the same sample in both."""
    pairs = set(pairwise(one)) & set(pairwise(other))
    return len(pairs) / max(len(one) - 1, 1)


def _beginnings(orders: list[list[int]], first: int, second: int) -> str:
    return f"they begin {_listed(orders[first][:5])} and {_listed(orders[second][:5])}"


def _normal(shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    generator = np.random.default_rng(secrets.randbits(64))
    return [np.asarray(generator.normal(size=shape)) for shape in shapes]


def _averaged(
    testbed: Testbed,
    gradients: Sequence[Sequence[Array | None]],
    samples: list[int],
    *,
    shapes: Sequence[tuple[int, ...]] = (),
    frozen: Sequence[int] = (),
    tied: Sequence[int] = (),
    **how: Any,
) -> Run:
    shapes = shapes or [own.shape for own in gradients[0] if own is not None]
    arguments = [
        {
            "weights": [np.full(shape, 0.5) for shape in shapes], "gradients": list(own), "samples": count,
            "frozen": list(frozen), "tied": list(tied),
        }
        for own, count in zip(gradients, samples, strict=True)
    ]  # fmt: skip
    return testbed.run("average_gradients", arguments=arguments, **how)


def _judged(
    run: Run,
    gradients: Sequence[Sequence[Array | None]],
    samples: list[int],
    frozen: Sequence[int] = (),
    tied: Sequence[int] = (),
) -> Finding:
    """Whether every rank has the mean over all samples, what is frozen is as it was, and weights are too."""
    expected = f"on every rank the mean over the samples of all ({_listed(samples)} on ranks 0 to {len(samples) - 1})"
    if run.failure:
        return Finding.failed(run, expected)
    for rank, result in enumerate(run.results):
        where = f"rank {rank} of {len(samples)}"
        for place, found in enumerate(result["gradients"]):
            if place in frozen:
                right, rule = gradients[rank][place], f"the frozen layer {place} as it was"
            else:
                right, rule = _mean([own[place] for own in gradients], samples), expected
            if not _close(found, right):
                observed = f"gradient of layer {place}: {_first(found)}; expected {_first(right)}"
                return Finding.of(observed=observed, expected=rule, passed=False, where=where)
        if any(not np.array_equal(weight, np.full_like(weight, 0.5)) for weight in result["weights"]):
            return Finding.of(
                observed="parameters were changed", expected="only gradients change", passed=False, where=where
            )
        if any(not result["tied"][place] for place in tied):
            observed, rule = "tied layers have become two", "tied layers stay one"
            return Finding.of(observed=observed, expected=rule, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


def _mean(gradients: Sequence[Array | None], samples: list[int]) -> Array:
    parts = [count * own for own, count in zip(gradients, samples, strict=True) if own is not None]
    return np.asarray(sum(parts) / sum(samples))


def _close(found: Any, right: Array | None) -> bool:
    if found is None or right is None:
        return found is None and right is None
    return np.shape(found) == right.shape and np.allclose(found, right, rtol=CLOSE, atol=CLOSE)


def _first(array: Any) -> str:
    if array is None:
        return "none"
    numbers = np.ravel(array)
    return f"{', '.join(f'{number:.6g}' for number in numbers[:3])}{', ...' if numbers.size > 3 else ''}"


def _of_which(run: Run) -> str:
    """What passed the network, by kind."""
    told: Counter[str] = Counter()
    for collective in run.log.collectives:
        told[f"{collective.kind} of"] += collective.num_bytes
    sent = sum(message.num_bytes for message in run.log.messages)
    parts = [f"{kind} {count:,} bytes" for kind, count in told.items()]
    parts += [f"messages of {sent:,} bytes together"] if sent else []
    return f" ({'; '.join(parts)})" if parts else ""


def _samples(count: int) -> Batch:
    return tuple(_normal([(count, WIDTH), (count, 2)]))  # type: ignore[return-value]


def _parts(world: int) -> list[Batch]:
    """One batch in parts of different sizes; rank 0's goes through the layer that not all samples go through."""
    parts = [_samples(count) for count in random.sample(range(1, 9), world)]
    for rank, (inputs, _) in enumerate(parts):
        inputs[:, 0] = np.abs(inputs[:, 0]) * (1 if rank == 0 else -1)
    return parts


def _joined(parts: list[Batch]) -> Batch:
    return np.concatenate([inputs for inputs, _ in parts]), np.concatenate([targets for _, targets in parts])


def _columns(batches: list[Batch]) -> dict[str, list[Array]]:
    return {"inputs": [inputs for inputs, _ in batches], "targets": [targets for _, targets in batches]}


def _order(inputs: Array, world: int, batch: int, share: int) -> list[list[int]]:
    """Shares of one epoch by rank, with some sample of positive first number in every joined batch."""
    while True:
        order = random.sample(range(world * share), world * share)
        shares = [order[rank::world] for rank in range(world)]
        firsts = range(0, share, batch)
        if all(any(inputs[sample, 0] > 0 for own in shares for sample in own[at : at + batch]) for at in firsts):
            return shares


def _one_process(testbed: Testbed, optimizer: str, seed: int, batches: list[Batch]) -> tuple[Array, Sequence[str]]:
    """The states after each step, computed without the student's file, and the name of each of their numbers."""
    order = {"optimizer": optimizer, "seed": seed, **_columns(batches)}
    run = testbed.run("one_process", arguments=[order], student=False)
    return np.asarray(run.results[0]["states"]), run.results[0]["names"]


def _same_states(run: Run, right: Array, names: Sequence[str], expected: str, where: str, extra: int = 0) -> Finding:
    """names: of the tensor that each number belongs to. extra: how many states there are beyond those of steps."""
    for rank, result in enumerate(run.results):
        states = np.asarray(result["states"])
        observed, place = "", f"rank {rank}, {where}"
        if len(states) != len(right):
            observed = f"{len(states) - extra} steps, where one process makes {len(right) - extra}"
        elif states.shape != right.shape:
            observed = f"a model of {states[0].size} numbers, where one process has {right[0].size}: are tied ones two?"
        elif not (close := np.isclose(states, right, rtol=CLOSE, atol=CLOSE)).all():
            step = int(np.argmin(close.all(axis=1)))
            wrong = np.flatnonzero(~close[step])
            tensors = ", ".join(dict.fromkeys(names[number] for number in wrong))
            furthest = np.max(np.abs(states[step] - right[step]))
            observed = f"{wrong.size} of {right[step].size} numbers differ, by up to {furthest:.3g}, in {tensors}"
            place = f"rank {rank} after step {step + 1}, {where}"
        if observed:
            return Finding.of(observed=observed, expected=expected, passed=False, where=place)
    return Finding.of(observed=expected, expected=expected, passed=True)
