"""What lab 09 asks of tasks.py. Samples, sizes, orders and rates are drawn from `testbed.rng`.

The space of the inputs:
* worlds of 1 to 6 ranks, even and odd; one to three batches of one to several samples for each rank and update;
* updates with all samples; updates with few, in which ranks have shares of two sizes, or nothing; batches of two sizes;
* float64 and float32 models; matrices, vectors, a single number, a parameter without a number, one in another layout;
* layers that are frozen (other ones from call to call), tied, used by the samples of one rank alone, or by nobody's;
* gradients that are there before; several updates and epochs, with epochs of several lengths; two groups of parameters;
* gradients of 400 kB and more;
* warm-ups of no update, of one and of many; factors below 1 and above; updates before, at and after the end of warm-up;
* squared lengths for one pair of batches and for several pairs; equal batches; noise that hides the gradient.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from distsim.grading import Finding, check

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from distsim.testbed import Run, Testbed

Array = NDArray[Any]
Part = Literal["results", "exchanges", "computing"]  # of what a run is judged by, in this order

WIDTH = 6  # numbers in one sample of the small network
LARGE_WIDTH = (320, 360)  # of a network with some 100,000 numbers
# Of the network's parameters: the frozen layer; further ones, too; all but one vector.
FROZEN, MORE_FROZEN, MOST_FROZEN = [5, 6], [0, 5, 6, 10], [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
OLD = 7.0  # the gradient of what is frozen, as in ranks.py
SECONDS_PER_SAMPLE = 0.001  # of computing, as in ranks.py
MOST_LATE = 1e-6  # seconds
BESIDE_BYTES = 64  # in the exchange, beside the gradients
CLOSE = {"float64": 1e-9, "float32": 2e-4}  # the types lose far less, the smallest mistake far more
ITEM_BYTES = {"float64": 8, "float32": 4}
EVEN_WORLDS, ODD_WORLDS = (2, 4), (3, 5)
SQUARES = "Given right squares, your noise_scale is right. So look at the squares that your joined_gradient returns."
ANOTHER_RULE = "Here this is right. The check one_exchange_for_each_update says more on the broken rule."
MOST_TOLD = 4  # exchanges of a finding, one after the other
AGAINST_THE_RULES = 0.5  # of the points are for right results with other exchanges or computing than asked for
FROM_THE_TRUTH = 0.2  # of the noise scale; six standard errors, see `noise_scale_of_a_quadratic`


@check(
    points=2,
    hint="Which samples does an update take, and which of them does each rank? Take 11 samples on 2 ranks by hand.",
    how="Slice the next N x batch x accumulated of the order; of the slice take every N-th; slice that by `batch`.",
)
def samples_of_each_update(testbed: Testbed) -> Finding:
    """Orders that updates divide or not; a last update with a sample for each rank, with fewer, and with more."""
    expected = "each update's samples once, in even shares, in as few batches as possible, without a message"
    for world in (1, _even(testbed), _odd(testbed)):
        cases = []
        for batch, accumulated in ((3, 2), (2, 3), (4, 1), (1, 2), (5, 3)):
            joined = world * batch * accumulated
            for count in (2 * joined, joined + 1, 2 * joined + _whole(testbed, 2, max(joined, 3)), 3 * joined - 1, 1):
                order = testbed.rng.choice(10**6, size=count, replace=False).tolist()
                cases.append({"order": order, "batch": batch, "accumulated": accumulated})

        def judge(run: Run, cases: list[dict[str, Any]] = cases, world: int = world) -> Finding | None:
            for number, case in enumerate(cases):
                found = [result["cases"][number] for result in run.results]
                where = f"{len(case['order'])} samples, {world} ranks, {case['accumulated']} batches of {case['batch']}"
                if not all(one["kept"] for one in found):
                    return _wrong("the order has changed", "the order stays as it is", where)
                if told := _about_batches([one["updates"] for one in found], **case):
                    return _wrong(*told, where)
            return None

        if lost := _lost(testbed, "batches", [{"cases": cases}] * world, {"results"}, judge, expected):
            return lost
    return _fine(expected)


@check(
    points=3,
    hint="What does the gradient of a mean loss count for a batch? What is in .grad before, and what for the frozen?",
    how="Backward of len(inputs) x loss adds up sums over samples; all_reduce them; divide by the samples of all.",
)
def gradient_of_all_samples(testbed: Testbed) -> Finding:
    """Updates of several full batches; parameters are frozen, tied, or needed by one rank's samples or nobody's."""
    for world, batch, dtype in ((1, 3, "float64"), (_even(testbed), 2, "float32"), (_odd(testbed), 3, "float64")):
        sizes = [[[batch] * accumulated] * world for accumulated in (2, 1, 3, 2)]
        frozen = [FROZEN, MORE_FROZEN, FROZEN, MOST_FROZEN]
        updates = _Updates.drawn(testbed, sizes, dtype=dtype, frozen=frozen)
        if lost := _lost_in(testbed, updates, {"results"}, gradients=True):
            return lost
    return _fine("on every rank, after every update, the gradient of the mean over the samples of all")


@check(
    points=3,
    hint="How much does one sample count if a rank has 5 samples and another rank has 1? What does a rank without do?",
    how="Sum gradients over samples, not over batches or ranks. A rank without a batch sends zeros, and has the mean.",
)
def uneven_and_empty_shares(testbed: Testbed) -> Finding:
    """Batches of different sizes, ranks with different numbers of batches, and ranks without any."""
    for world, dtype in ((_odd(testbed), "float64"), (_even(testbed), "float32"), (1, "float64")):
        updates = _Updates.drawn(testbed, _uneven(testbed, world), dtype=dtype)
        if lost := _lost_in(testbed, updates, {"results"}, gradients=True):
            return lost
    return _fine("on every rank the mean over the samples of all, however few a rank has")


@check(
    points=2,
    hint="How many exchanges does the network see in one update, and of how many bytes each? What does the loss see?",
    how="Backward for each batch by itself; then torch.cat of the gradients and the news; then one dist.all_reduce.",
)
def one_exchange_for_each_update(testbed: Testbed) -> Finding:
    """The exchanges that the network has seen, and each rank's computing; for small and large gradients."""
    odd = _odd(testbed)
    cases = (
        (2, [[[2, 1], [2]]], "float32", _whole(testbed, *LARGE_WIDTH)),
        (odd, [*_uneven(testbed, odd), [[2, 2, 2]] * odd, [[1]] * odd], "float64", WIDTH),
    )
    for _world, sizes, dtype, width in cases:
        updates = _Updates.drawn(testbed, sizes, dtype=dtype, width=width)
        if lost := _lost_in(testbed, updates, {"exchanges", "computing"}):
            return lost
    return _fine(f"{len(cases[1][1])} updates, each with one all_reduce after its batches")


@check(
    points=2,
    hint="Whose gradients are squared, and when? How much does a rank count? Frozen parameters have no part in it.",
    how="With m samples, the own gradient is its sum / m. Send m times its square, m, and 1 if m > 0 beside the sums.",
)
def squares_of_two_batches(testbed: Testbed) -> Finding:
    """Even shares, uneven ones, and ranks without samples; two types."""
    for world, dtype in ((_even(testbed), "float64"), (_odd(testbed), "float32"), (1, "float64")):
        sizes = [[[2, 2]] * world, *_uneven(testbed, world), [[3]] * world]
        frozen = [MORE_FROZEN, *[FROZEN] * (len(sizes) - 2), MORE_FROZEN]
        updates = _Updates.drawn(testbed, sizes, dtype=dtype, frozen=frozen)
        if lost := _lost_in(testbed, updates, {"results"}, squares=True):
            return lost
    return _fine("on every rank the two batches, the mean square of the own gradients, and that of the joined one")


@check(
    points=2,
    hint="Which update has which rate? Write down all rates for a warm-up of 4 updates from 0.1 to 0.8.",
    how="Before update warm_up: rate + (growth - 1) x rate x update / warm_up. From there on: growth x rate.",
)
def rate_at_each_update(testbed: Testbed) -> Finding:
    """Several warm-ups and factors, at updates before, at and after the end of warm-up."""
    cases = []
    for warm_up in (0, 1, 2, _whole(testbed, 5, 9), _whole(testbed, 200, 400)):
        growth, rate = testbed.rng.uniform(2.0, 300.0), testbed.rng.uniform(0.01, 0.5)
        for factor in (growth, 1 / growth, 1.0):
            numbers = {0, 1, 2, warm_up // 2, warm_up - 1, warm_up, warm_up + 1, 3 * warm_up + 10}
            cases += [
                {"update": number, "rate": rate, "growth": factor, "warm_up": warm_up}
                for number in sorted(numbers)
                if number >= 0
            ]
    expected = "the rate of each update"

    def judge(run: Run) -> Finding | None:
        for case, found in zip(cases, run.results[0]["rates"], strict=True):
            right = _rate(**case)
            if not np.isclose(found, right, rtol=1e-9):
                where = ", ".join(f"{name} {value:.6g}" for name, value in case.items())
                return _wrong(f"{found:.6g}", f"{right:.6g}", where)
        return None

    return _lost(testbed, "rates", [{"cases": cases}], {"results"}, judge, expected) or _fine(expected)


@check(
    points=3,
    hint="Does joined_gradient pass its own checks? Which rate has each group at each step, also in epoch 2?",
    how="For each order, for each update: set lr in all groups, joined_gradient with the own samples, optimizer.step.",
)
def training_as_one_process(testbed: Testbed) -> Finding:
    """Two trainings in a process; each has short last updates, and a warm-up that ends in the last epoch."""
    expected = "on every rank, after every update, the parameters of one process with batches of N x b x k samples"
    for world, sizes in ((2, [(3, 1), (2, 3)]), (3, [(2, 2), (3, 1)]), (1, [(2, 2)])):
        trainings = [_Training.drawn(testbed, world, batch, accumulated) for batch, accumulated in sizes]
        rights = [_one_process(testbed, one.updates, one.rates) for one in trainings]
        gradient_bytes = [num_bytes for one in trainings for num_bytes in one.updates.gradient_bytes]

        def judge(run: Run, trainings: list[_Training] = trainings, rights: list[Any] = rights) -> Finding | None:
            for number, (training, right) in enumerate(zip(trainings, rights, strict=True)):
                if finding := _about_training([one[number] for one in run.results], right, training, expected):
                    return finding
            return None

        lost = _lost(
            testbed, "training", [{"trainings": [one.given for one in trainings]}] * world, {"results"}, judge,
            expected, exchanges=len(gradient_bytes), gradient_bytes=gradient_bytes,
            computing=sum(one.samples for one in trainings),
        )  # fmt: skip
        if lost:
            return lost
    return _fine(expected)


@check(
    points=3,
    hint="What is the mean of each squared length? Which is noisier: a mean of quotients, or a quotient of means?",
    how="(small - large) / (1/small_batch - 1/large_batch) is V of one pair; large - V / large_batch is |G|^2.",
)
def noise_scale_of_a_quadratic(testbed: Testbed) -> Finding:
    """Given squares; then `joined_gradient` and `noise_scale` together, where the noise scale is known.

    There 300 parameters have noise of variance 1 (V = 300), and |G|^2 = 40. Of 24 updates, 16 have 4 ranks with 4
    samples each. For these the standard error of V is V sqrt(2 / (300 x 16 x 3)) = 1 %. The large batch's squared
    length has the variance 4 |G|^2 / 16 + 2 x 300 / 16^2 = 12.3; the estimate of |G|^2 is 4/3 times as far from its
    mean, and has a standard error of 4/3 x 3.5 / 4 = 1.2, 3 %. The other 8 updates have fewer samples and more noise.
    With them the quotient has a standard error of 3.6 % (400 draws), so 20 % is more than five standard errors.
    """
    cases, expected = _squares(testbed), "V / |G|^2 of the means"

    def judge(run: Run) -> Finding | None:
        for case, found in zip(cases, run.results[0]["noise_scales"], strict=True):
            right = _noise_scale(case)
            if not (found == right or np.isclose(found, right, rtol=1e-6)):
                where = "; ".join(", ".join(f"{number:.4g}" for number in one) for one in case)
                return _wrong(f"{found:.6g}", f"{right:.6g}", f"small_batch, small, large_batch, large: {where}")
        return None

    if lost := _lost(testbed, "noise_scales", [{"cases": cases}], {"results"}, judge, expected):
        return lost
    world, length, square = 4, 300, 40.0
    start = testbed.rng.normal(size=length)
    center = start + np.sqrt(square) * _direction(testbed, length)
    sizes = [[[2, 2]] * world] * 16 + [[[2, 2], [2, 1], [2, 1], [2]], [[1], [1], [1], []]] * 4
    inputs = [
        [[center + testbed.rng.normal(size=(size, length)) for size in update[rank]] for update in sizes]
        for rank in range(world)
    ]
    truth = length / square
    told = f"{truth:.3g}, give or take {FROM_THE_TRUTH:.0%}"

    def judge_quadratic(run: Run) -> Finding | None:
        for rank, result in enumerate(run.results):
            if not abs(result["noise_scale"] - truth) < FROM_THE_TRUTH * truth:
                where = f"rank {rank} of {world}, {len(sizes)} updates of a quadratic"
                return _wrong(f"{result['noise_scale']:.3g}", told, where, hint=SQUARES)
        return None

    lost = _lost(
        testbed, "noise_of_quadratic", [{"start": start, "inputs": own} for own in inputs], {"results"},
        judge_quadratic, told, exchanges=len(sizes), gradient_bytes=[8 * length] * len(sizes),
        computing=[[size for update in sizes for size in update[rank]] for rank in range(world)],
    )  # fmt: skip
    return lost or _fine(told)


def _about_batches(
    updates: list[list[list[list[int]]]], order: list[int], batch: int, accumulated: int
) -> tuple[str, str] | None:
    """What is observed and expected, if an epoch is wrongly divided. updates: by rank."""
    world = len(updates)
    joined = world * batch * accumulated
    count = -(-len(order) // joined)
    for rank, own in enumerate(updates):
        if len(own) != count:
            return f"rank {rank} has {len(own)} updates", f"{count} updates on every rank"
    for number in range(count):
        due = order[number * joined : (number + 1) * joined]
        shares = [[sample for one in own[number] for sample in one] for own in updates]
        taken = Counter(sample for share in shares for sample in share)
        if taken != Counter(due):
            missing, strange = len(set(due) - set(taken)), len(set(taken) - set(due))
            more = sum(taken.values()) - len(taken)
            observed = f"of update {number}, {missing} samples are nobody's, {strange} are others', {more} come again"
            return observed, f"the {len(due)} samples of the order from place {number * joined} on, each once"
        sizes = [len(share) for share in shares]
        if max(sizes) - min(sizes) > 1:
            return f"shares of {_listed(sizes)} samples in update {number}", "shares that differ by at most one sample"
        for rank, own in enumerate(updates):
            parts = [len(one) for one in own[number]]
            if any(not 1 <= part <= batch for part in parts) or len(parts) != -(-sizes[rank] // batch):
                observed = f"rank {rank} has batches of {_listed(parts) or 'no'} samples in update {number}"
                fewest = -(-sizes[rank] // batch)
                return observed, f"{fewest} batches for {sizes[rank]} samples, each of 1 to {batch}"
    return None


@dataclass(frozen=True)
class _Updates:
    """What several updates compute with. sizes, inputs, targets: by update, rank and batch. frozen: by update."""

    seed: int
    width: int
    dtype: str
    sizes: list[list[list[int]]]
    inputs: list[list[list[Array]]]
    targets: list[list[list[Array]]]
    frozen: list[list[int]]

    @classmethod
    def drawn(
        cls, testbed: Testbed, sizes: list[list[list[int]]], *, dtype: str, width: int = WIDTH,
        frozen: list[list[int]] | None = None,
    ) -> _Updates:  # fmt: skip
        """One rank's samples alone need the special layer; in the second update, nobody's."""
        inputs, targets = [], []
        for number, update in enumerate(sizes):
            having = [rank for rank, own in enumerate(update) if own]
            special = None if number == 1 else int(testbed.rng.choice(having))
            drawn = [[testbed.rng.normal(size=(size, width)) for size in own] for own in update]
            for rank, own in enumerate(drawn):
                for one in own:
                    one[:, 0] = np.abs(one[:, 0]) * (1 if rank == special else -1)
            inputs.append([[one.astype(dtype) for one in own] for own in drawn])
            targets.append([[testbed.rng.normal(size=(size, 2)).astype(dtype) for size in own] for own in update])
        seed = _whole(testbed, 0, 2**31)
        return cls(seed, width, dtype, sizes, inputs, targets, frozen or [FROZEN] * len(sizes))

    @property
    def world(self) -> int:
        """The number of ranks."""
        return len(self.sizes[0])

    @property
    def start(self) -> dict[str, Any]:
        """The network that all ranks begin with."""
        return {"seed": self.seed, "width": self.width, "dtype": self.dtype}

    def arguments(self) -> list[dict[str, Any]]:
        """For the driver, by rank."""
        return [
            {
                **self.start, "frozen": self.frozen,
                "inputs": [update[rank] for update in self.inputs],
                "targets": [update[rank] for update in self.targets],
            }
            for rank in range(self.world)
        ]  # fmt: skip

    def joined(self, rates: Sequence[float | None]) -> dict[str, Any]:
        """For one process, in which a part is all that a rank has. rates: of the steps; None where none is made."""
        updates = [
            {
                "inputs": [_rows(own, self.width) for own in inputs], "targets": [_rows(own, 2) for own in targets],
                "frozen": frozen, "rate": rate,
            }
            for inputs, targets, frozen, rate in zip(self.inputs, self.targets, self.frozen, rates, strict=True)
        ]  # fmt: skip
        return {**self.start, "updates": updates}

    @property
    def gradient_bytes(self) -> list[int]:
        """Of the trained parameters, in each update."""
        width = self.width
        of_layer = [1, 0, 3, width * width, width, width * width, width, width, 2 * width, 2, 2 * width, 2]
        return [
            ITEM_BYTES[self.dtype] * sum(count for number, count in enumerate(of_layer) if number not in still)
            for still in self.frozen
        ]

    @property
    def computing(self) -> list[list[int]]:
        """The sizes of each rank's batches."""
        return [[size for update in self.sizes for size in update[rank]] for rank in range(self.world)]


@dataclass(frozen=True)
class _Training:
    """A training of three epochs. updates: as one process makes them, at these rates."""

    given: dict[str, Any]
    updates: _Updates
    rates: list[float]

    @classmethod
    def drawn(cls, testbed: Testbed, world: int, batch: int, accumulated: int) -> _Training:
        """The first epoch ends with one sample, so most ranks have none. The third ends with batches of two sizes."""
        joined = world * batch * accumulated
        counts = [joined + 1, 2 * joined + joined // 2, joined + joined // 2 + 1]
        total = max(counts) + 3
        inputs, targets = testbed.rng.normal(size=(total, WIDTH)), testbed.rng.normal(size=(total, 2))
        orders = [testbed.rng.choice(total, size=count, replace=False).tolist() for count in counts]
        pieces = [order[first : first + joined] for order in orders for first in range(0, len(order), joined)]
        rate, warm_up = testbed.rng.uniform(0.01, 0.02), len(pieces) - 1
        seed = _whole(testbed, 0, 2**31)
        given = {
            "seed": seed, "width": WIDTH, "inputs": inputs, "targets": targets, "orders": orders, "batch": batch,
            "accumulated": accumulated, "rate": rate, "warm_up": warm_up,
        }  # fmt: skip
        updates = _Updates(
            seed, WIDTH, "float64", [[[len(piece)]] for piece in pieces],
            [[[inputs[piece]]] for piece in pieces], [[[targets[piece]]] for piece in pieces], [FROZEN] * len(pieces),
        )  # fmt: skip
        growth = world * accumulated
        return cls(given, updates, [_rate(number, rate, growth, warm_up) for number in range(len(pieces))])

    @property
    def samples(self) -> int:
        """Of all ranks in all updates."""
        return sum(map(len, self.given["orders"]))


def _uneven(testbed: Testbed, world: int) -> list[list[list[int]]]:
    """Three updates, by rank and batch: every rank has another number of samples; some have none; one alone has any."""
    several = [[3] * (rank // 2) + [1 + rank % 2] for rank in range(world)]
    some = [[2, 1][: rank % 3] for rank in range(1, world + 1)]
    alone = [[2, 3] if rank == 0 else [] for rank in range(world)]
    return [[update[rank] for rank in testbed.rng.permutation(world)] for update in (several, some, alone)]


def _rows(own: Sequence[Array], width: int) -> Array:
    return np.concatenate([np.zeros((0, width)), *own])


def _one_process(testbed: Testbed, updates: _Updates, rates: Sequence[float] = ()) -> Any:
    """What a single process has after each update."""
    joined = updates.joined(rates or [None] * len(updates.sizes))
    run = testbed.run("one_process", arguments=[joined], student=False)
    if run.failure:
        raise RuntimeError(run.failure)
    return run.results[0]


def _lost_in(
    testbed: Testbed, updates: _Updates, asked: Collection[Part], *, gradients: bool = False, squares: bool = False
) -> Finding | None:
    """Why points are lost by these calls of joined_gradient, if any are. gradients, squares: of the results, what."""
    expected = "on every rank what one process with the samples of all has"
    right = _one_process(testbed, updates) if "results" in asked else None
    world = updates.world

    def judge(run: Run) -> Finding | None:
        for rank, result in enumerate(run.results):
            for number in range(len(updates.sizes)):
                where = f"rank {rank} of {world}, update {number}: {_shares_told(updates.sizes[number])}"
                if gradients and (told := _about_gradients(result, right, number, updates)):
                    return _wrong(*told, where)
                if squares:
                    due, found = right["squares"][number], result["squares"][number]
                    if not np.allclose(found, due, rtol=CLOSE[updates.dtype], atol=0.0):
                        return _wrong(_squares_told(found), _squares_told(due), where)
            if not np.array_equal(result["weights"], right["weights"]):
                return _wrong("parameters were changed", "only gradients change", f"rank {rank} of {world}")
        return None

    return _lost(
        testbed, "joined", updates.arguments(), asked, judge, expected, exchanges=len(updates.sizes),
        gradient_bytes=updates.gradient_bytes, computing=updates.computing,
    )  # fmt: skip


def _about_gradients(result: Any, right: Any, number: int, updates: _Updates) -> tuple[str, str] | None:
    """What is observed and expected, if some parameter has another gradient than it should after this update."""
    for place, (found, due) in enumerate(zip(result["gradients"][number], right["gradients"][number], strict=True)):
        name = right["layers"][place]
        if due is None:
            if found is None or not np.array_equal(found, np.full_like(found, OLD)):
                return f"the gradient of {name}, which is frozen, has changed", "what is frozen stays as it is"
            continue
        if found is None or found.shape != due.shape or found.dtype != updates.dtype:
            observed = "no gradient" if found is None else f"a {found.dtype} gradient of shape {found.shape}"
            return f"{observed} of {name}", f"a {updates.dtype} gradient of shape {due.shape}"
        close = CLOSE[updates.dtype]
        if not np.allclose(found, due, rtol=close, atol=close):
            first = f"{_first(found)} in {name}"
            return first, f"{_first(due)}: the gradient of the mean over {right['squares'][number][2]:.0f} samples"
    return None


def _about_training(results: Sequence[Any], right: Any, training: _Training, expected: str) -> Finding | None:
    """Whether some rank differs from one process after some update."""
    due = [*right["states"], right["states"][-1]]  # the driver's last state is that when all is over
    pieces = [sum(update[0]) for update in training.updates.sizes]
    told = f"batches of {training.given['batch']}, {training.given['accumulated']} for each update"
    for rank, result in enumerate(results):
        states = result["states"]
        where = f"rank {rank} of {len(results)}, {told}"
        if len(states) != len(due):
            return _wrong(f"{len(states) - 1} steps of the optimizer", f"{len(due) - 1} steps", where)
        for number, (found, one) in enumerate(zip(states, due, strict=True)):
            wrong = np.flatnonzero(~np.isclose(found, one, rtol=CLOSE["float64"], atol=CLOSE["float64"]))
            if wrong.size:
                names = ", ".join(dict.fromkeys(right["names"][place] for place in wrong))
                observed = f"{wrong.size} of {one.size} numbers differ, in {names}"
                after = f"update {min(number, len(pieces) - 1)}"
                return _wrong(observed, expected, f"{where}, after {after} of {len(pieces)}")
        if result["samples"] != pieces:
            return _wrong(f"returned large batches of {_listed(result['samples'])}", _listed(pieces), where)
    return None


def _lost(
    testbed: Testbed,
    function: str,
    arguments: Sequence[dict[str, Any]],
    asked: Collection[Part],
    judge: Callable[[Run], Finding | None],
    expected: object,
    *,
    exchanges: int = 0,
    gradient_bytes: Sequence[int] = (),
    computing: list[list[int]] | int = 0,
) -> Finding | None:
    """Why points are lost by this run, if any are. Every run of the student's code is judged here.

    asked: what the check is about; a fault there costs all of its points. Exchanges and computing must be as they
    should in every run; where the check is about something else, they cost a part of its points. exchanges: how many
    all-reduces. gradient_bytes: of each. computing: the samples of each rank's batches, or the number of all samples.
    """
    run = testbed.run(function, arguments=arguments)
    if run.failure:
        return Finding.failed(run, expected)
    if "results" in asked and (finding := judge(run)) is not None:
        return finding
    for part, told in (
        ("exchanges", _about_exchanges(run, exchanges, gradient_bytes)),
        ("computing", _about_computing(run, computing)),
    ):
        if told is not None:
            where = f"{len(arguments)} ranks"
            if part in asked:
                return Finding.of(observed=told[0], expected=told[1], passed=False, where=where)
            observed = f"right results, but {told[0]}"
            return Finding.of(
                observed=observed, expected=told[1], share=AGAINST_THE_RULES, where=where, hint=ANOTHER_RULE
            )
    return None


def _about_exchanges(run: Run, exchanges: int, gradient_bytes: Sequence[int]) -> tuple[str, str] | None:
    """What is observed and expected, if the network has carried something else than it should."""
    seen = [(entry.kind, entry.num_bytes) for entry in run.log.collectives]
    if not seen and not run.log.messages and len(run.results) == 1:
        return None
    alike = len(seen) == exchanges and all(
        kind == "all_reduce" and least <= num_bytes <= least + BESIDE_BYTES
        for (kind, num_bytes), least in zip(seen, gradient_bytes, strict=True)
    )
    if alike and not run.log.messages:
        return None
    messages = f"{len(run.log.messages)} messages and " if run.log.messages else ""
    rule = f"{exchanges} x all_reduce, one for each update, of the gradients and at most {BESIDE_BYTES} bytes"
    most = ", ".join(map(str, dict.fromkeys(gradient_bytes)))
    return messages + _told(seen), f"{rule} (gradients: {most} bytes)" if exchanges else "no exchange"


def _about_computing(run: Run, computing: list[list[int]] | int) -> tuple[str, str] | None:
    """What is observed and expected, if a rank computes with other batches than its own, or not once with each."""
    spans: list[list[int]] = [[] for _ in run.results]
    for busy in run.log.busy:
        spans[busy.rank].append(round((busy.end_seconds - busy.start_seconds) / SECONDS_PER_SAMPLE))
    if isinstance(computing, int):
        total = sum(map(sum, spans))
        if total == computing:
            return None
        return f"the loss is computed for {total} samples", f"for {computing}: each rank computes with its own samples"
    for rank, (seen, due) in enumerate(zip(spans, computing, strict=True)):
        if sorted(seen) != sorted(due):
            observed = f"rank {rank} computes with batches of {_listed(seen) or 'no'} samples"
            return observed, f"with batches of {_listed(due) or 'no'} samples: each one by itself, once"
    return None


def _told(exchanges: Sequence[tuple[str, int]]) -> str:
    """Equal exchanges that follow each other are counted."""
    runs = [(f"{kind} of {num_bytes} bytes", len(list(run))) for (kind, num_bytes), run in groupby(exchanges)]
    shown = [f"{count} x {one}" if count > 1 else one for one, count in runs[:MOST_TOLD]]
    rest = sum(count for _, count in runs[MOST_TOLD:])
    return ", ".join([*shown, *([f"and {rest} more"] if rest else [])]) or "no exchange"


def _rate(update: int, rate: float, growth: float, warm_up: int) -> float:
    """As `learning_rate` should give it."""
    share = 1.0 if update >= warm_up else update / warm_up
    return (1 - share) * rate + share * growth * rate


def _squares(testbed: Testbed) -> list[list[list[float]]]:
    """Cases of squared lengths, each by small_batch, small, large_batch and large."""
    uniform = testbed.rng.uniform

    def pair(small_batch: float, large_batch: float, noise: float, square: float) -> list[float]:
        return [small_batch, square + noise / small_batch, large_batch, square + noise / large_batch]

    noise, square = uniform(50.0, 90.0), uniform(1.0, 5.0)
    some = [(8, 32), (8, 32), (8, 32), (8, 16), (2.5, 5), (4 / 3, 4)]
    several = [pair(*sizes, uniform(-20.0, 90.0), uniform(-1.0, 6.0)) for sizes in some]
    equal = [5.0, uniform(90.0, 99.0), 5.0, uniform(10.0, 20.0)]
    return [
        [pair(8, 64, noise, square)],
        several[:3],
        several,
        [equal, *several[2:], equal],
        [pair(8, 32, -noise, square), pair(4, 32, -noise / 2, 2 * square), pair(4, 32, noise / 2, square)],
        [pair(8, 32, noise, -square), pair(4, 8, noise, square / 2)],
        [pair(8, 32, -noise, -square)],
        [[1.0, 4.0, 2.0, 2.0]],  # |G|^2 is 0
        [pair(8, 32, noise, -square), pair(4, 8, 2 * noise, 3 * square)],
    ]


def _noise_scale(measured: Sequence[Sequence[float]]) -> float:
    """As `noise_scale` should give it."""
    solutions = [
        ((small - large) / (1 / small_batch - 1 / large_batch), large_batch * large - small_batch * small,
         large_batch - small_batch)
        for small_batch, small, large_batch, large in measured
        if small_batch != large_batch
    ]  # fmt: skip
    noise = sum(one for one, _, _ in solutions)
    square = sum(above / below for _, above, below in solutions)
    return max(noise / square, 0.0) if square > 0 else math.inf


def _direction(testbed: Testbed, length: int) -> Array:
    """A vector of length 1."""
    drawn = testbed.rng.normal(size=length)
    return np.asarray(drawn / np.linalg.norm(drawn))


def _shares_told(sizes: list[list[int]]) -> str:
    """The batches of all ranks, in words."""
    return "batches of " + "; ".join(_listed(own) or "none" for own in sizes)


def _squares_told(squares: Sequence[float]) -> str:
    return ", ".join(
        f"{name} {number:.5g}"
        for name, number in zip(("small_batch", "small", "large_batch", "large"), squares, strict=True)
    )


def _first(array: Array) -> str:
    numbers = np.ravel(array)
    if not numbers.size:
        return "an empty tensor"
    return f"{', '.join(f'{number:.6g}' for number in numbers[:3])}{', ...' if numbers.size > 3 else ''}"


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _fine(expected: str) -> Finding:
    return Finding.of(observed=expected, expected=expected, passed=True)


def _wrong(observed: str, expected: str, where: str, hint: str = "") -> Finding:
    return Finding.of(observed=observed, expected=expected, passed=False, where=where, hint=hint)


def _whole(testbed: Testbed, least: int, below: int) -> int:
    return int(testbed.rng.integers(least, below))


def _even(testbed: Testbed) -> int:
    return int(testbed.rng.choice(EVEN_WORLDS))


def _odd(testbed: Testbed) -> int:
    return int(testbed.rng.choice(ODD_WORLDS))
