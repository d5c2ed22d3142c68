"""What lab 04 asks of tasks.py. All inputs are drawn from `testbed.rng`; only their owner has them.

The space of the inputs:
* worlds of 1 to 8 ranks; each function meets an even and an odd world;
* float64, float32, float16 and bfloat16; bool and integer buffers; two types in one model;
* values that are nan or infinite before rank 0's come;
* parameters of 0 dimensions, without a number, with columns in place of rows in memory, two of one shape, frozen ones,
  tied ones, ones in layers within layers; buffers that `state_dict` leaves out;
* gradients that some ranks do not have; nothing to train; from 1 to 199 samples for each rank; models after each other;
* several steps, epochs and groups of parameters; a last batch of one sample; two optimizers, each with its own loss, of
  which one is always 0 and steep; a model that evaluates.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.cluster import Cluster
from distsim.grading import Finding, check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distsim.testbed import Run, Testbed

Array = NDArray[Any]
Batch = tuple[Array, Array]  # inputs and targets

WIDTH = 32  # numbers in one sample of the small network
OPTIMIZERS = ("SGD with momentum", "Adam")  # sums in place of means pass under Adam, means of parameters under SGD
EVEN_WORLDS, ODD_WORLDS = (2, 4, 6, 8), (3, 5, 7)
SMALL_WORLDS = ((2, 4), (3, 5))  # for training, which takes its time to start
CLOSE = {"float64": 1e-9, "float32": 1e-5}  # the types lose far less, the smallest mistake far more
HALF_CLOSE = 5e-3  # of float16's largest number
BRIEF_CLOSE = 5e-2  # of bfloat16's largest number
BRIEF_SCALE = 1e6  # of its gradients: half precision ends far below
FEW = 199  # samples of a rank
LARGE = (30_000, 60_000)  # samples of a rank: together, three ranks have more than float16's largest number
MOST_FOLLOWING = 0.2  # of a shuffled share's samples stand before the same one as in another order
MANY_PARAMETERS = 80  # a number told for each of them takes more than FLAG_BYTES
FLAG_BYTES = 256  # for what is told beside the gradients of one step, such as the number of samples
TENSOR_BYTES = 500  # for what is told beside a tensor of the state, such as its shape
TOO_DEAR = 0.5  # of the points are for right results that the network carries at too high a price


@check(
    points=2,
    hint="What does a model compute with, besides what it learns? Which of it does your code send, and how often?",
    how="dist.broadcast(tensor, src=0) for each of model.parameters(), then for each of model.buffers().",
)
def one_start(testbed: Testbed) -> Finding:
    """Two models after each other; tensors of several types; on the testbed and on gloo."""
    expected = "rank 0's weights and buffers on every rank, in the tensors that were there before"
    for world, backend in ((_odd(testbed), "testbed"), (2, "gloo")):
        states = [[_state(testbed), _small_state(testbed)] for _ in range(world)]
        for own in states[1:]:
            _spoil(own)
        arguments = [{"models": own} for own in states]
        bound = sum(_broadcast_bytes([_bytes_of_state(one)], world) for one in states[0])

        def judge(run: Run, states: list[Any] = states) -> Finding | None:
            return _about_states(run, states, expected)

        lost = _lost(testbed, "same_parameters", arguments, judge, bound, expected, backend=backend)
        if lost:
            return lost
    return _full(expected)


@check(
    points=2,
    hint="Which samples does each rank take, and how many? Try 10 samples on 4 ranks, and 3 samples on 5, by hand.",
    how="Make one order on every rank, fill it up from its beginning, and take every N-th place from your rank on.",
)
def shares_disjoint_and_complete(testbed: Testbed) -> Finding:
    """Counts that the ranks divide or not, fewer samples than ranks; sizes and repeats as torch's own sampler has."""
    expected = "shares of one size which are all samples together, without a message"
    epochs = [0, 3]
    for world in (_even(testbed), _odd(testbed)):
        counts = [
            world * _whole(testbed, 40, 60),
            world * _whole(testbed, 40, 60) + 1,
            world,
            world + 2,
            world - 1,
            3,
            2,
            1,
        ]
        arguments = [{"counts": counts, "seed": _whole(testbed, 0, 10**6), "epochs": epochs}] * world

        def judge(run: Run, world: int = world, counts: list[int] = counts) -> Finding | None:
            for place, count in enumerate(counts):
                for number, epoch in enumerate(epochs):
                    found = _Shares.of(run, place, number)
                    if not found.fit(count, world):
                        where = f"{count} samples, {world} ranks, epoch {epoch}"
                        return _wrong(found.told(count), _Shares.right(count, world), where)
            return None

        if lost := _lost(testbed, "shares", arguments, judge, 0.0, expected):
            return lost
    return _full("as DistributedSampler")


@check(
    points=2,
    hint="What does the order depend on, and what else changes when you draw it?",
    how="Seed a torch.Generator of your own with seed + epoch each time that you draw; torch.randperm takes one.",
)
def new_order_each_epoch(testbed: Testbed) -> Finding:
    """Shuffled in every epoch, over all ranks; the same order for the same epoch, also on one rank, and no other."""
    world, epochs = 3, [0, 1, 6, 17, 1000, 1001]
    seed = 1 + 2 * _whole(testbed, 0, 10**6)  # odd, so that seed | epoch is one number for the epochs 0 and 1
    order = {"count": _whole(testbed, 300, 400) * world, "seed": seed, "epochs": epochs}
    expected = "another order of the samples in each epoch, and the same one for the same epoch and seed, by no message"

    by_epoch: list[list[list[int]]] = []  # the shares of all ranks

    def judge(run: Run) -> Finding | None:
        for rank, result in enumerate(run.results):
            if observed := _about_orders(result, epochs):
                return _wrong(observed, expected, f"rank {rank} of {world}")
        by_epoch.extend([result["epochs"][place]["samples"] for result in run.results] for place in range(len(epochs)))
        return None

    def judge_alone(run: Run) -> Finding | None:
        for epoch, shares, alone in zip(epochs, by_epoch, run.results[0]["epochs"], strict=True):
            if alone["samples"] not in (_in_turn(shares), _in_blocks(shares)):
                observed = (
                    f"one rank begins with {_listed(alone['samples'][:6])}, which is not the order of {world} ranks"
                )
                return _wrong(observed, expected, f"epoch {epoch}")
        return None

    for ranks, judged in ((world, judge), (1, judge_alone)):
        if lost := _lost(testbed, "orders", [order] * ranks, judged, 0.0, expected):
            return lost
    return _full(expected)


@check(
    points=3,
    hint="How much does each rank's gradient count? Take two ranks, one with 1 sample and one with 3, by hand.",
    how="A rank with n of all M samples counts n / M: scale its gradient by that, then all_reduce the sum.",
)
def mean_gradients(testbed: Testbed) -> Finding:
    """Models after each other, with random gradients from batches of different sizes; on the testbed and on gloo."""
    shapes = [(3, 4), (5,), (), (2, 3, 2), (0,), (3, 4), (40, 10)]
    worlds = ((1, "testbed"), (_even(testbed), "testbed"), (_odd(testbed), "testbed"), (3, "gloo"))
    for world, backend in worlds:
        models = [
            _Model(testbed, world, shapes, turned=[6]),
            _Model(testbed, world, shapes[::-1], dtypes=["float32"] * len(shapes)),
            _Model(testbed, world, shapes, dtypes=["float64", "float32"] * len(shapes), turned=[0]),
            _Model(testbed, world, [(60, 30), (3,), (5,)], dtypes=["float16", "float16", "float32"], samples=LARGE),
            _Model(testbed, world, [(60, 30), (3,), (5,)], dtypes=["float32"] * 3, brief=[0, 1], samples=(1, 999)),
            _Model(testbed, world, shapes, turned=[6]),  # of the first one's shapes and types
        ]
        if lost := _lost_by_averaging(testbed, models, backend=backend):
            return lost
    return _full("on every rank the mean over the samples of all")


@check(
    points=2,
    hint="Which parameters does your code send, and does each rank send as many? What has a frozen one afterwards?",
    how="Go through model.parameters(): it has tied ones once. Skip what is frozen; fill in zeros where grad is None.",
)
def frozen_and_tied(testbed: Testbed) -> Finding:
    """0 and 6, of one shape, have gradients on one rank alone; 1 and 5 are frozen, 1 with an old one; 2, 4 are tied.

    Of another model one rank has no gradient at all, and a third one is frozen as a whole.
    """
    shapes = [(3, 4), (60,), (30, 30), (2, 5), (30, 30), (50,), (3, 4)]
    for world in _small_worlds(testbed):
        models = []
        for dtype in ("float64", "float32"):
            model = _Model(
                testbed, world, shapes, dtypes=[dtype] * len(shapes), frozen=[1, 5], tied=[2, 4], thawed=True
            )
            having = _whole(testbed, 0, world)
            for rank, own in enumerate(model.gradients):
                own[5] = None
                if rank != having:
                    own[0] = own[6] = None
            models.append(model)
        without = _Model(testbed, world, [(3, 4), (5,)])
        without.gradients[_whole(testbed, 0, world)] = [None, None]
        models += [without, _Model(testbed, world, [(3, 4), (5,)], frozen=[0, 1])]
        if lost := _lost_by_averaging(testbed, models):
            return lost
    return _full("the mean for what is trained, and what is frozen as it was")


@check(
    points=2,
    hint="How many bytes does a rank's link carry in your exchange, and how many more with every further rank?",
    how="all_reduce carries 2 (N - 1) / N of what it is given; a gather of everything carries N - 1 times as much.",
)
def bytes_of_one_all_reduce(testbed: Testbed) -> Finding:
    """Gradients so large that nothing beside them counts, in a world where a server or a gather carry far more.

    And so many gradients that a number told for each of them is too much.
    """
    shapes = [(100, 50), (100, 60), (80, 50), (100, 50), (50,)]
    large = _Model(testbed, _whole(testbed, 4, 8), shapes, frozen=[1], tied=[0, 3])
    many = _Model(testbed, _odd(testbed), [(2,)] * MANY_PARAMETERS)
    for model in (large, many):
        if lost := _lost_by_averaging(testbed, [model], price=True):
            return lost
    return _full(f"{large.link_bytes:,.0f} bytes on each link")


@check(
    points=3,
    hint="In which order does your step do its parts? What is left of the step before, and what counts twice?",
    how="zero_grad, backward on the own part, average the gradients once, and only then optimizer.step.",
)
def equal_to_one_process(testbed: Testbed) -> Finding:
    """After each of several steps with parts of different sizes, under two optimizers."""
    expected = "on every rank, after every step, the parameters of one process with the joined batch"
    trainings, parts = [], []
    for world, optimizer in zip(_small_worlds(testbed), OPTIMIZERS, strict=True):
        parts.append([_parts(testbed, world, more) for more in (0, 2, 1, 0)])
        joined = _columns([_joined(step) for step in parts[-1]])
        trainings.append({"optimizer": optimizer, "seed": _whole(testbed, 0, 2**31), **joined})
    for training, own, right in zip(trainings, parts, _one_process(testbed, trainings), strict=True):
        world = len(own[0])
        start = {name: training[name] for name in ("optimizer", "seed")}
        arguments = [{**start, **_columns([step[rank] for step in own])} for rank in range(world)]
        bound = len(own) * _all_reduce_bytes(right["trained_bytes"], world)
        where = f"{world} ranks, {start['optimizer']}"

        def judge(run: Run, right: Any = right, where: str = where) -> Finding | None:
            return _about_training([result["states"] for result in run.results], right, expected, where)

        if lost := _lost(testbed, "steps", arguments, judge, bound, expected):
            return lost
    return _full(expected)


@check(
    points=2,
    hint="What do the ranks begin with, and which order does each epoch take? How often is each of it asked for?",
    how="same_parameters once; then, in every epoch, loader.sampler.set_epoch(epoch) before its batches.",
)
def training_as_one_process(testbed: Testbed) -> Finding:
    """Two trainings after each other, from different starts, over three epochs."""
    expected = "on every rank, after every step of 3 epochs, the parameters of one process that begins as rank 0"
    for world in (2, 3):
        drawn = [_training(testbed, world, optimizer) for optimizer in OPTIMIZERS]
        rights = _one_process(testbed, [joined for joined, _ in drawn])
        bound = sum(_broadcast_bytes([right["state_bytes"]], world) for right in rights)
        for (joined, _), right in zip(drawn, rights, strict=True):
            bound += len(joined["inputs"]) * _all_reduce_bytes(right["trained_bytes"], world)

        def judge(run: Run, rights: Any = rights, world: int = world) -> Finding | None:
            for number, (optimizer, right) in enumerate(zip(OPTIMIZERS, rights, strict=True)):
                found = [result[number]["states"] for result in run.results]
                where = f"{world} ranks, {optimizer}"
                # The driver's last state, an extra one, is that when all is over.
                if finding := _about_training(found, right, expected, where, extra=1):
                    return finding
            return None

        arguments = [{"trainings": [own[rank] for _, own in drawn]} for rank in range(world)]
        if lost := _lost(testbed, "training", arguments, judge, bound, expected):
            return lost
    return _full(expected)


def _training(testbed: Testbed, world: int, optimizer: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A training for one process with the joined batches, and the same one for each rank.

    The samples that a rank never takes are not known to it (NaN).
    """
    batch, share, epochs = 4, 9, 3
    inputs, targets = _samples(testbed, world * share)
    orders = [_order(testbed, inputs, world, batch, share) for _ in range(epochs)]  # by epoch and rank
    seeds = [_whole(testbed, 0, 2**31) for _ in range(world)]
    arguments = []
    for rank in range(world):
        own = [order[rank] for order in orders]
        others = sorted(set(range(world * share)).difference(*own))
        known = inputs.copy(), targets.copy()
        for array in known:
            array[others] = np.nan
        data = {"inputs": known[0], "targets": known[1], "orders": own, "batch": batch}
        arguments.append({"optimizer": optimizer, "seed": seeds[rank], **data})
    steps = [
        [sample for own in order for sample in own[first : first + batch]]
        for order in orders
        for first in range(0, share, batch)
    ]
    joined = _columns([(inputs[step], targets[step]) for step in steps])
    return {"optimizer": optimizer, "seed": seeds[0], **joined}, arguments


def _lost(
    testbed: Testbed,
    function: str,
    arguments: Sequence[dict[str, Any]],
    judge: Callable[[Run], Finding | None],
    most_bytes: float,
    expected: str,
    *,
    backend: str = "testbed",
    share: float = TOO_DEAR,
    least_bytes: float = 0.0,
) -> Finding | None:
    """Why points are lost by this run, if any are. Every run of the student's code is judged here.

    First by its results, then by what the network has carried. least_bytes, most_bytes: of the busiest link. share: of
    the points that are kept where the results alone are right.
    """
    run = testbed.run(function, arguments=arguments, backend=backend)
    if run.failure:
        return Finding.failed(run, expected)
    if (finding := judge(run)) is not None:
        return finding
    carried = _link_bytes(run)
    if least_bytes <= carried <= most_bytes:
        return None
    observed = f"{carried:,.0f} bytes on the busiest link{_of_which(run)}{', and right results' if share else ''}"
    rule = f"at least {least_bytes:,.0f} bytes on a link: with fewer, no rank knows the gradients of all"
    if carried > most_bytes:
        rule = f"no more than {most_bytes:,.0f} bytes on a link: what is exchanged once, and the numbers of samples"
    return Finding.of(observed=observed, expected=rule, share=share, where=f"{len(arguments)} ranks")


def _link_bytes(run: Run) -> float:
    """Of the busiest link, in one direction, if what passes the network does so one after the other."""
    ranks = range(len(run.results))
    links = Cluster.model_validate({"workers": len(ranks), "bandwidth": "1 B/s", "latency": "0 s"})
    sent, received = Counter[int](), Counter[int]()
    for message in run.log.messages:
        sent[message.source] += message.num_bytes
        received[message.target] += message.num_bytes
    from distsim.testbed.costs import collective_seconds  # the testbed needs torch, which a list of labs does without

    found = sum(collective_seconds(one.kind, one.num_bytes, one.ranks, links) for one in run.log.collectives)
    return found + max(max(sent[rank], received[rank]) for rank in ranks)


def _of_which(run: Run) -> str:
    """What passed the network, by kind."""
    told: Counter[str] = Counter()
    for collective in run.log.collectives:
        told[f"{collective.kind} of"] += collective.num_bytes
    sent = sum(message.num_bytes for message in run.log.messages)
    parts = [f"{kind} {count:,} bytes" for kind, count in told.items()]
    parts += [f"messages of {sent:,} bytes together"] if sent else []
    return f" ({'; '.join(parts)})" if parts else ""


def _all_reduce_bytes(num_bytes: int, world: int) -> float:
    """The most that a link may carry in one step: an all-reduce of the gradients, and what is told beside them."""
    return 2 * (world - 1) / world * num_bytes + FLAG_BYTES


def _broadcast_bytes(states: Sequence[Sequence[int]], world: int) -> float:
    """The most that a link may carry to make these states alike. states: the bytes of each one's tensors."""
    rounds = (world - 1).bit_length()  # of a binomial tree: rank 0 sends in each of them
    return rounds * sum(num_bytes + TENSOR_BYTES for state in states for num_bytes in state)


def _full(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong(observed: str, expected: str, where: str) -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where)


def _whole(testbed: Testbed, least: int, below: int) -> int:
    return int(testbed.rng.integers(least, below))


def _even(testbed: Testbed) -> int:
    return int(testbed.rng.choice(EVEN_WORLDS))


def _odd(testbed: Testbed) -> int:
    return int(testbed.rng.choice(ODD_WORLDS))


def _small_worlds(testbed: Testbed) -> list[int]:
    """An even and an odd one."""
    return [int(testbed.rng.choice(worlds)) for worlds in SMALL_WORLDS]


def _state(testbed: Testbed) -> dict[str, Any]:
    """Weights and buffers of the types that models have; 1 is frozen, 2 and 3 are tied."""
    normal = testbed.rng.normal
    tied = normal(size=(40, 50)).astype(np.float32)
    weights = [
        normal(size=(50, 40)), normal(size=1200), tied, tied, normal(size=()), np.zeros(0), normal(size=(50, 40)),
        normal(size=(60, 30)).astype(np.float16),
    ]  # fmt: skip
    buffers = [
        normal(size=1000), None, testbed.rng.integers(2**60, 2**62, size=()), normal(size=(90, 90)) > 0, None,
        testbed.rng.integers(0, 255, size=8000).astype(np.uint8), normal(size=(30, 40)),
        testbed.rng.integers(-(2**62), 2**62, size=(30, 40)),
    ]  # fmt: skip
    return {"weights": weights, "buffers": buffers, "frozen": [1], "tied": [2, 3], "turned": [6], "passing": [3, 6]}


def _spoil(models: list[dict[str, Any]]) -> None:
    """Some numbers of each floating-point tensor are nan or infinite, as in memory that nobody has filled yet."""
    for model in models:
        for tensor in (*model["weights"], *model["buffers"]):
            if tensor is not None and tensor.dtype.kind == "f":
                tensor.flat[::7], tensor.flat[1::7] = np.nan, np.inf


def _small_state(testbed: Testbed) -> dict[str, Any]:
    """One weight and no buffer."""
    return {"weights": [testbed.rng.normal(size=(50, 40))], "buffers": [None]}


def _bytes_of_state(state: dict[str, Any]) -> list[int]:
    """Of each tensor; tied ones are one."""
    tied = state.get("tied", [])[1:]
    weights = [weight.nbytes for place, weight in enumerate(state["weights"]) if place not in tied]
    return weights + [buffer.nbytes for buffer in state["buffers"] if buffer is not None]


def _about_states(run: Run, states: list[list[dict[str, Any]]], expected: str) -> Finding | None:
    """What is wrong with the models of some rank. states: by rank and model, as they began."""
    for rank, result in enumerate(run.results):
        for number, right in enumerate(states[0]):
            found, where = result["models"][number], f"rank {rank} of {len(states)}, model {number}"
            if not found["same_objects"]:
                observed = "the model has other parameters or buffers than before: its optimizer does not know them"
                return _wrong(observed, expected, where)
            for kind in ("weights", "buffers"):
                for place, tensor in enumerate(right[kind]):
                    if tensor is not None and not _same(found[kind][place], tensor):
                        name = "frozen weight" if kind == "weights" and place in right.get("frozen", []) else kind[:-1]
                        passing = " (which state_dict leaves out)" if place in right.get("passing", []) else ""
                        values = f"{_first(found[kind][place])} in place of {_first(tensor)}"
                        layer = f"layer {place}{passing if kind == 'buffers' else ''}"
                        told = f"the {name} of {layer}, {tensor.dtype}, is not rank 0's: {values}"
                        return _wrong(told, expected, where)
            if not found["same_memory"]:
                observed = "a tensor lies elsewhere in memory than before: who had a view of it, sees the old values"
                return _wrong(observed, "every tensor filled in place", where)
            if [not trained for trained in found["trained"]] != [
                place in right.get("frozen", []) for place in range(len(right["weights"]))
            ]:
                return _wrong("what is frozen and what is not has changed", expected, where)
    return None


def _same(found: Any, right: Any) -> bool:
    return found is not None and np.asarray(found).dtype == right.dtype and np.array_equal(found, right)


class _Shares:
    """What the ranks take in one epoch."""

    def __init__(self, samples: list[list[int]], lengths: list[int]) -> None:
        self.samples = samples
        self.sizes = [len(own) for own in samples]
        self.lengths = lengths
        self.taken = Counter(sample for own in samples for sample in own)

    @classmethod
    def of(cls, run: Run, place: int, epoch: int) -> _Shares:
        """place: of the count among those that the run was given."""
        found = [result["shares"][place][epoch] for result in run.results]
        return cls([one["samples"] for one in found], [one["length"] for one in found])

    @classmethod
    def right(cls, count: int, world: int) -> str:
        """In words: the shares of one size that take each sample as often as the others, or once more."""
        size = -(-count // world)
        filled = [place % count for place in range(size * world)]
        return cls([filled[rank::world] for rank in range(world)], [size] * world).told(count)

    def fit(self, count: int, world: int) -> bool:
        """Whether these are shares of one size, filled up from the beginning of an order of the samples."""
        size = -(-count // world)
        rounds, rest = divmod(size * world, count)
        times = sorted(self.taken.values()) == [rounds] * (count - rest) + [rounds + 1] * rest
        even = self.sizes == self.lengths == [size] * world
        return even and set(self.taken) == set(range(count)) and times and self.filled(count)

    def filled(self, count: int) -> bool:
        """Whether the order repeats from its beginning: each rank has every N-th place of it, or each one block."""
        orders = _in_turn(self.samples), _in_blocks(self.samples)
        return any(order[count:] == order[: max(0, len(order) - count)] for order in orders)

    def told(self, count: int) -> str:
        """In words."""
        nobodys = count - len(set(self.taken) & set(range(count)))
        most = max(self.taken.values(), default=0)
        lengths = "" if self.lengths == self.sizes else f" (len says {_listed(self.lengths)})"
        return (
            f"shares of {_listed(self.sizes)}{lengths}; {nobodys} samples are nobody's, "
            f"{sum(self.taken.values()) - len(self.taken)} places repeat a sample, none is taken more than {most} times"
            f"{'' if self.filled(count) else '; the first of the order are not those that it is filled up with'}"
        )


def _in_turn(shares: Sequence[Sequence[int]]) -> list[int]:
    """The order of which each rank has every N-th place."""
    return [sample for turn in zip(*shares, strict=False) for sample in turn]


def _in_blocks(shares: Sequence[Sequence[int]]) -> list[int]:
    """The order of which each rank has one block."""
    return [sample for own in shares for sample in own]


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
    for first, second in combinations(range(len(epochs)), 2):
        if _following(orders[first], orders[second]) > MOST_FOLLOWING:
            share = _following(orders[first], orders[second])
            begins = f"they begin {_listed(orders[first][:5])} and {_listed(orders[second][:5])}"
            return (
                f"epochs {epochs[first]} and {epochs[second]} have nearly one order: {share:.0%} of the samples come "
                f"right before the same one in both; {begins}"
            )
        if set(orders[first]) == set(orders[second]):
            return f"the rank has the same samples in epochs {epochs[first]} and {epochs[second]}"
    if result["once_more"]["samples"] != orders[0]:
        return f"epoch {epochs[0]} has another order when it is gone through again"
    if result["taken_up_again"]["samples"] != orders[-1]:
        return f"a run that is taken up again at epoch {epochs[-1]} has another order there than the first run"
    if _following(result["other_seed"]["samples"], orders[0]) > MOST_FOLLOWING:
        return "another seed gives the same order"
    one, other = result["in_turn"]
    if one != other:
        return "two iterators of one sampler, a step of each in turn, do not go through the same order"
    if one != orders[0]:
        return "a sampler whose set_epoch nobody has called does not go through epoch 0"
    if result["chosen_meanwhile"]["samples"] != orders[0]:
        return f"set_epoch changes the order of an iteration that has begun in epoch {epochs[0]}"
    if result["disturbed"]:
        return "the sampler has changed the state of torch's, Python's or numpy's own random numbers"
    return None


def _following(one: list[int], other: list[int]) -> float:
    """Which share of the samples stands before the same sample in both."""
    pairs = set(pairwise(one)) & set(pairwise(other))
    return len(pairs) / max(len(one) - 1, 1)


class _Model:
    """A model to average the gradients of. gradients: by rank and layer; samples: by rank.

    thawed: whether the frozen layers were the only trained ones, in a call before. brief: the places of layers that are
    bfloat16, which numpy does not have. samples: the least and the most of a rank.
    """

    def __init__(
        self, testbed: Testbed, world: int, shapes: Sequence[tuple[int, ...]], *, dtypes: Sequence[str] = (),
        frozen: Sequence[int] = (), tied: Sequence[int] = (), turned: Sequence[int] = (),
        brief: Sequence[int] = (), thawed: bool = False, samples: tuple[int, int] = (1, FEW),
    ) -> None:  # fmt: skip
        types = dtypes or ["float64"] * len(shapes)
        self.weights = [np.full(shape, 0.5, dtype) for shape, dtype in zip(shapes, types, strict=False)]
        self.frozen, self.tied, self.turned, self.thawed = list(frozen), list(tied), list(turned), thawed
        self.brief = list(brief)
        least, most = samples
        self.samples = [int(count) for count in testbed.rng.choice(range(least, most + 1), size=world, replace=False)]
        scale = min(1.0, FEW / most)  # sums over the samples fit float16
        self.gradients: list[list[Array | None]] = [
            [np.asarray(testbed.rng.normal(size=weight.shape) * scale, dtype=weight.dtype) for weight in self.weights]
            for _ in range(world)
        ]
        for own in self.gradients:
            for place in self.tied:
                own[place] = own[self.tied[0]]
            for place in self.brief:
                own[place] *= BRIEF_SCALE  # type: ignore[operator] # no gradient is missing yet

    def arguments(self, rank: int) -> dict[str, Any]:
        """For the driver."""
        return {
            "weights": self.weights, "gradients": self.gradients[rank], "samples": self.samples[rank],
            "frozen": self.frozen, "tied": self.tied, "turned": self.turned, "thawed": self.thawed,
            "brief": self.brief,
        }  # fmt: skip

    @property
    def link_bytes(self) -> float:
        """The most that a link may carry."""
        sent = [place for place in range(len(self.weights)) if place not in (*self.frozen, *self.tied[1:])]
        calls = [sent, self.frozen] if self.thawed else [sent]
        return sum(_all_reduce_bytes(sum(map(self._bytes, places)), len(self.samples)) for places in calls)

    def _bytes(self, place: int) -> int:
        return self.weights[place].nbytes // (2 if place in self.brief else 1)

    def mean(self, place: int) -> Array:
        """Of the layer's gradients; a rank without one has zeros."""
        parts = [
            count * own[place].astype(np.float64)  # type: ignore[union-attr]
            for own, count in zip(self.gradients, self.samples, strict=True)
            if own[place] is not None
        ]
        return np.asarray(sum(parts) / sum(self.samples)).astype(self.weights[place].dtype)

    def wrong(self, result: Any, rank: int, where: str) -> Finding | None:
        """Whether this rank has the mean over all samples, what is frozen is as it was, and weights are too."""
        samples = f"{_listed(self.samples)} on ranks 0 to {len(self.samples) - 1}"
        for place, found in enumerate(result["gradients"]):
            rule = f"the mean over the samples of all ({samples})"
            right: Array | None = self.mean(place)
            if place in self.frozen:
                right, rule = self.gradients[rank][place], "the frozen layer's gradient as it was"
            if not _close(found, right, brief=place in self.brief):
                return _wrong(
                    f"gradient of layer {place}: {_first(found)}{_apart(found, right)}",
                    f"{rule}: {_first(right)}",
                    where,
                )
        if any(not np.array_equal(found, right) for found, right in zip(result["weights"], self.weights, strict=True)):
            return _wrong("parameters were changed", "only gradients change", where)
        if any(not result["tied"][place] for place in self.tied):
            return _wrong("tied layers have become two", "tied layers stay one", where)
        return None


def _lost_by_averaging(
    testbed: Testbed, models: Sequence[_Model], *, backend: str = "testbed", price: bool = False
) -> Finding | None:
    """Why points are lost by averaging the gradients of these models, one after the other. price: judge it alone."""
    world = len(models[0].samples)
    arguments = [{"cases": [model.arguments(rank) for model in models]} for rank in range(world)]

    def judge(run: Run) -> Finding | None:
        for rank, result in enumerate([] if price else run.results):
            for number, model in enumerate(models):
                where = f"rank {rank} of {world}, model {number} of {len(models)}"
                if finding := model.wrong(result["cases"][number], rank, where):
                    return finding
        return None

    bound = sum(model.link_bytes for model in models)
    least = bound - len(models) * FLAG_BYTES if price else 0.0
    share = 0.0 if price else TOO_DEAR
    expected = "on every rank the mean over the samples of all"
    return _lost(
        testbed, "average_gradients", arguments, judge, bound, expected,
        backend=backend, share=share, least_bytes=least,
    )  # fmt: skip


def _close(found: Any, right: Array | None, *, brief: bool = False) -> bool:
    if found is None or right is None:
        return found is None and right is None
    alike = np.shape(found) == right.shape and found.dtype == right.dtype
    if brief or right.dtype.name == "float16":
        close = BRIEF_CLOSE if brief else HALF_CLOSE
        return alike and np.allclose(found, right, rtol=0.0, atol=close * np.abs(right).max())
    close = CLOSE[right.dtype.name]
    return alike and np.allclose(found, right, rtol=close, atol=close)


def _apart(found: Any, right: Array | None) -> str:
    """How far two arrays are from each other, in words."""
    if found is None or right is None or np.shape(found) != right.shape:
        return ""
    if found.dtype != right.dtype:
        return f", {found.dtype} in place of {right.dtype}"
    return f", up to {np.max(np.abs(found - right)):.2g} away from it"


def _first(array: Any) -> str:
    if array is None:
        return "none"
    numbers = np.ravel(array)
    if not numbers.size:
        return "an empty tensor"
    told = (str(number) if numbers.dtype.kind in "iu" else f"{number:.6g}" for number in numbers[:3])
    return f"{', '.join(told)}{', ...' if numbers.size > 3 else ''}"


def _samples(testbed: Testbed, count: int) -> Batch:
    return testbed.rng.normal(size=(count, WIDTH)), testbed.rng.normal(size=(count, 2))


def _parts(testbed: Testbed, world: int, more: int) -> list[Batch]:
    """One batch in parts of different sizes, each with so many samples more.

    Rank 0's goes through the layer that not all samples go through.
    """
    parts = [_samples(testbed, int(count)) for count in testbed.rng.permutation(range(1, world + 1)) + more]
    for rank, (inputs, _) in enumerate(parts):
        inputs[:, 0] = np.abs(inputs[:, 0]) * (1 if rank == 0 else -1)
    return parts


def _joined(parts: list[Batch]) -> Batch:
    return np.concatenate([inputs for inputs, _ in parts]), np.concatenate([targets for _, targets in parts])


def _columns(batches: list[Batch]) -> dict[str, list[Array]]:
    return {"inputs": [inputs for inputs, _ in batches], "targets": [targets for _, targets in batches]}


def _order(testbed: Testbed, inputs: Array, world: int, batch: int, share: int) -> list[list[int]]:
    """Shares of one epoch by rank, with some sample of positive first number in every joined batch."""
    while True:
        order = testbed.rng.permutation(world * share).tolist()
        shares = [order[rank::world] for rank in range(world)]
        firsts = range(0, share, batch)
        if all(any(inputs[sample, 0] > 0 for own in shares for sample in own[at : at + batch]) for at in firsts):
            return shares


def _one_process(testbed: Testbed, trainings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a single process has after each step of each training, computed without the student's file."""
    run = testbed.run("one_process", arguments=[{"trainings": trainings}], student=False)
    found: list[dict[str, Any]] = run.results[0]["trainings"]
    return found


def _about_training(
    found: Sequence[Any], one_process: dict[str, Any], expected: str, where: str, extra: int = 0
) -> Finding | None:
    """What is wrong with the states of some rank. extra: how many there are beyond those after each step."""
    right, names = one_process["states"][1:], one_process["names"]
    right = np.concatenate([right, *[right[-1:]] * extra])
    for rank, states in enumerate(map(np.asarray, found)):
        if len(states) != len(right):
            observed = f"{len(states) - extra} steps, where one process makes {len(right) - extra}"
            return _wrong(observed, expected, f"rank {rank}, {where}")
        if states.shape != right.shape:
            observed = f"a model of {states[0].size} numbers, where one process has {right[0].size}: are tied ones two?"
            return _wrong(observed, expected, f"rank {rank}, {where}")
        close = np.isclose(states, right, rtol=CLOSE["float64"], atol=CLOSE["float64"])
        if not close.all():
            step = int(np.argmin(close.all(axis=1)))
            wrong = np.flatnonzero(~close[step])
            tensors = ", ".join(dict.fromkeys(names[number] for number in wrong))
            furthest = np.max(np.abs(states[step] - right[step]))
            observed = f"{wrong.size} of {right[step].size} numbers differ, by up to {furthest:.3g}, in {tensors}"
            return _wrong(observed, expected, f"rank {rank} after step {step + 1}, {where}")
    return None
