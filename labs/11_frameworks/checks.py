"""What lab 11 asks of tasks.py. All inputs are drawn from `testbed.rng`.

The space of the inputs:
* worlds of 1 to 8 ranks, on machines of two; each function meets an even and an odd one; two to four for a port;
* numbers of samples that the ranks do not divide, and last batches that are not full; fewer test samples than ranks;
* updates of one batch, of two and of three; three epochs, and four where the order is judged;
* models that start otherwise on each rank, compute otherwise in training than in evaluation, and have a buffer;
* momentum, and a learning rate that falls after each epoch;
* ranks that begin at times of their own, before midnight and after it; checkpoints that take half a second to twenty
  minutes of virtual time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distsim.grading import Finding, check

if TYPE_CHECKING:
    from distsim.testbed import Run, Testbed

Array = NDArray[Any]
Judge = Callable[["_Job", "Run", int, Any], str]  # of a job, its run, its place in the run, and what `_all_of` says

CLOSE = 1e-9  # double precision loses far less, the smallest mistake far more
TOLD = 1e-6  # of losses and shares, which may be summed in single precision
WIDTH, HIDDEN, CLASSES = 12, 24, 5
WEIGHTS = HIDDEN * WIDTH + HIDDEN + CLASSES * HIDDEN + CLASSES
GRADIENT_BYTES = 8 * WEIGHTS
NAMES = ["first.bias", "first.weight", "last.bias", "last.weight", "middle"]
PORTS = ("train_ddp", "train_framework")
FRAMEWORKS = ("lightning", "accelerate")
TOLD_BYTES = 64  # of one evaluation, for each rank
EPOCHS = 3
BATCHES = ((1, 2), (3, 1))  # of one process in an update, by run and job
MOMENTUM = 0.9
REDUCTIONS = {"all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "all_to_all"}


@check(
    points=2,
    hint="How many samples has an update of all ranks? What is the rate for twice as many, and for half as many?",
    how="world size x accumulated x batch, divided by rate_samples, is what the rate is multiplied by.",
)
def rate_of_all_ranks(testbed: Testbed) -> Finding:
    """One process, eight, and odd numbers; more samples than the rate suits, and fewer; updates of several batches."""
    rng = testbed.rng
    for world in (1, 8, int(rng.choice([3, 5, 7])), 2):
        cases: list[dict[str, Any]] = [
            {
                "batch": int(rng.integers(1, 40)), "accumulated": accumulated, "epochs": EPOCHS,
                "rate": float(rng.uniform(0.01, 1)), "rate_samples": int(rng.integers(3, 600)),
                "decay": float(rng.uniform(0.5, 0.9)),
            }
            for accumulated in (1, 2, int(rng.integers(3, 9)))
        ]  # fmt: skip
        run = testbed.run("rates", arguments=[{"cases": cases}] * world)
        if run.failure:
            return Finding.failed(run, "a learning rate")
        for rank, result in enumerate(run.results):
            for case, found in zip(cases, result["rates"], strict=True):
                samples = world * case["accumulated"] * case["batch"]
                right = case["rate"] * samples / case["rate_samples"]
                if not np.isclose(found, right, rtol=CLOSE):
                    told = ", ".join(f"{name} = {case[name]:.4g}" for name in ("rate", "rate_samples", "batch"))
                    where = f"rank {rank} of {world}, {told}, accumulated = {case['accumulated']}"
                    return Finding.of(observed=f"{found:.6g}", expected=f"{right:.6g}", passed=False, where=where)
        if run.log.collectives or run.log.messages:
            return Finding.of(observed="a message", expected="no message", passed=False, where=f"{world} ranks")
    return Finding.of(observed="as linear scaling says", expected="as linear scaling says", passed=True)


@check(
    points=3,
    hint="Does each rank have as many test samples as the others? What does each rank contribute: means, or sums?",
    how="all_reduce the sum of losses, the number of right classes and the number of samples; then divide.",
)
def every_test_sample_counts_once(testbed: Testbed) -> Finding:
    """Fewer samples than ranks, numbers that the ranks do not divide, one batch and several, on uneven ranks."""
    rng = testbed.rng
    start = rng.normal(size=WEIGHTS)
    for world in (1, 4, int(rng.choice([3, 5]))):
        counts = [1, world - 1, world, 7 * world + 1, 6 * world, int(rng.integers(20, 60))]
        cases: list[dict[str, Any]] = [
            {**_samples(rng, max(count, 1)), "batch": int(rng.integers(2, 6)), "trains": bool(place % 2)}
            for place, count in enumerate(counts)
        ]
        run = testbed.run("evaluations", arguments=[{"start": start, "cases": cases}] * world)
        expected = "the mean loss and the share of right classes of all samples, on every rank"
        if run.failure:
            return Finding.failed(run, expected)
        for place, case in enumerate(cases):
            where = f"{len(case['labels'])} samples, {world} ranks, batches of {case['batch']}"
            found = [result["cases"][place] for result in run.results]
            if observed := _about_evaluation(case, found, start):
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
        if observed := _too_much(run, len(cases) * world * TOLD_BYTES, len(cases)):
            return Finding.of(
                observed=observed, expected="one small collective each", passed=False, where=f"{world} ranks"
            )
    return Finding.of(observed=expected, expected=expected, passed=True)


@check(
    points=4,
    hint="What does one process do in this update? Compare: first parameters, the gradient of each batch, the rate.",
    how="Wrap the model, divide each loss by accumulated, decay once for each epoch, and all_reduce the training loss.",
)
def ddp_trains_as_one_process(testbed: Testbed) -> Finding:
    """Two and three ranks, one to three batches in an update, uneven numbers of samples; after every update."""
    return _all_of(testbed, "train_ddp", _as_one_process)


@check(
    points=4,
    hint="What does the framework do by itself, and how often? Compare: rate, decay, batches of an update, mean loss.",
    how="Give it accumulated, let the rate fall once for each epoch, and take the mean of the losses over the ranks.",
)
def framework_trains_as_one_process(testbed: Testbed) -> Finding:
    """As with DistributedDataParallel; the framework makes the backwards."""
    return _all_of(testbed, "train_framework", _by_the_framework)


@check(
    points=3,
    hint="Who divides the samples: you, the framework, or both? What does the order depend on, in each epoch?",
    how="One DistributedSampler, with set_epoch; a framework that makes its own gets a loader without one.",
)
def every_sample_in_every_epoch(testbed: Testbed) -> Finding:
    """Half of the points for each port. Uneven numbers of samples; four epochs."""
    return _both(testbed, _samples_of_epochs, worlds=(3, 4), epochs=4)


@check(
    points=2,
    hint="Who saves, what, when, and how often? What does the framework write without being asked?",
    how="if rank 0: job.save(job.model.state_dict()); then a barrier. Turn loggers and checkpoints off.",
)
def rank_0_saves(testbed: Testbed) -> Finding:
    """Half of the points for each port. What is saved is compared with the parameters after each epoch."""
    return _both(testbed, _saved)


@check(
    points=2,
    hint="Count the all-reduces of an update with several batches. Which batch's gradients have to travel?",
    how="no_sync() around all batches of an update but the last; in a framework, its setting for accumulation.",
)
def one_exchange_for_each_update(testbed: Testbed) -> Finding:
    """Half of the points for each port. All bytes of reductions and gathers count; one batch and two in an update."""
    return _both(testbed, _exchanged)


@dataclass(frozen=True)
class _Job:
    """A job of several ranks, by drawn numbers. starts: of the models of the ranks. late_seconds: as drivers use it."""

    world: int
    starts: list[Array]
    late_seconds: list[float]
    training: dict[str, Array]
    test: dict[str, Array]
    numbers: dict[str, Any]

    @classmethod
    def drawn(cls, rng: np.random.Generator, world: int, accumulated: int, epochs: int) -> _Job:
        """A rank has a multiple of `accumulated` batches, whether samples or whole batches are dealt to the ranks.

        What else a mistake changes is the same for all draws: to drop the samples that are left over leaves as many
        batches, and neither all samples nor smaller batches give a multiple of `accumulated`, unless that is 1.
        """
        while True:
            batch, count = int(rng.integers(2, 6)), int(rng.integers(30, 90))
            own, dealt = ceil(ceil(count / world) / batch), ceil(ceil(count / batch) / world)
            as_many = ceil(count // world / batch) == own == dealt
            mistaken = (ceil(count / batch), ceil(ceil(count / world) / max(batch // world, 1)))
            cut_short = accumulated == 1 or all(batches % accumulated for batches in mistaken)
            if count % world and as_many and own % accumulated == 0 and cut_short:
                break
        numbers = {
            "batch": batch, "accumulated": accumulated, "epochs": epochs, "rate": float(rng.uniform(0.1, 0.3)),
            "rate_samples": int(rng.integers(40, 60)), "decay": float(rng.uniform(0.5, 0.8)),
            "save_seconds": rng.uniform(0.5, 1200, size=epochs).tolist(),
        }  # fmt: skip
        late_seconds = [rng.uniform(0, 10) + 10 * (rank % 2) for rank in range(world)]
        starts = [rng.normal(size=WEIGHTS) / 2 for _ in range(world)]
        tested = world * int(rng.integers(2, 6)) + 1
        if accumulated == 1:
            tested = world - 1  # the last rank has none
        return cls(world, starts, late_seconds, _samples(rng, count), _samples(rng, tested), numbers)

    @property
    def count(self) -> int:
        """The number of training samples."""
        return len(self.training["labels"])

    def arguments(self, rank: int) -> dict[str, Any]:
        """For the driver."""
        given = {"training": list(self.training.values()), "test": list(self.test.values()), "momentum": MOMENTUM}
        return {"start": self.starts[rank], "late_seconds": self.late_seconds[rank], **given, **self.numbers}

    def epochs_of(self, found: dict[str, Any]) -> list[list[list[int]]] | None:
        """The samples of one rank, by epoch and batch; None if its batches are none of whole epochs."""
        number = {value: place for place, value in enumerate(self.training["inputs"][:, 0].tolist())}
        batches = [[number.get(one, -1) for one in batch] for batch in found["learned"]]
        each, rest = divmod(len(batches), self.numbers["epochs"])
        if rest or not each or any(-1 in batch for batch in batches):
            return None
        return [batches[first : first + each] for first in range(0, len(batches), each)]

    def joined(self, results: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """What one process is to train with: for each epoch its updates with the joined batches of all ranks."""
        by_rank = [self.epochs_of(found) for found in results]
        shapes = {tuple(map(len, one)) if one else () for one in by_rank}
        accumulated = self.numbers["accumulated"]
        if len(shapes) != 1 or not all(each and each % accumulated == 0 for each in shapes.pop() or [0]):
            return None
        epochs = []
        for of_ranks in zip(*[one or [] for one in by_rank], strict=True):
            batches = [list(chain(*of_batch)) for of_batch in zip(*of_ranks, strict=True)]
            epochs.append([batches[first : first + accumulated] for first in range(0, len(batches), accumulated)])
        given = self.arguments(0)
        rate = given["rate"] * self.world * given["batch"] * accumulated / given["rate_samples"]
        taken = {name: given[name] for name in ("start", "training", "test", "decay", "momentum")}
        return {**taken, "epochs": epochs, "rate": rate}


def _about_evaluation(case: dict[str, Any], found: list[dict[str, Any]], start: Array) -> str:
    """What is wrong about one evaluation; empty if nothing is."""
    count, world = len(case["labels"]), len(found)
    places = {value: place for place, value in enumerate(case["inputs"][:, 0].tolist())}
    seen = Counter(places.get(one, -1) for own in found for batch in own["batches"] for one in batch)
    right = _evaluated(case, start)
    for rank, own in enumerate(found):
        samples = sum(map(len, own["batches"]))
        if not own["kept"]:
            return f"rank {rank}'s model {'evaluates' if case['trains'] else 'trains'} afterwards, as it did not before"
        if max(map(len, own["batches"]), default=0) > case["batch"]:
            return f"a batch of {max(map(len, own['batches']))} samples on rank {rank}"
        if samples > ceil(count / world):
            return f"rank {rank} computes with {samples} samples"
        if len(own["numbers"]) != len(right):
            return f"{len(own['numbers'])} numbers in place of {len(right)} on rank {rank}"
        if not np.allclose(own["numbers"], right, rtol=TOLD, atol=0):
            return f"{_listed(own['numbers'])} in place of {_listed(right)} on rank {rank}"
    if seen != Counter(range(count)):
        return f"{sum(times > 1 for times in seen.values())} samples twice, {count - len(seen)} not at all"
    return ""


def _evaluated(samples: dict[str, Array], weights: Array) -> tuple[float, float]:
    """Loss and accuracy by numpy: the model of the drivers, as it evaluates."""
    first, rest = weights[: HIDDEN * WIDTH].reshape(HIDDEN, WIDTH), weights[HIDDEN * WIDTH :]
    bias, rest = rest[:HIDDEN], rest[HIDDEN:]
    last, last_bias = rest[: CLASSES * HIDDEN].reshape(CLASSES, HIDDEN), rest[CLASSES * HIDDEN :]
    scores = np.tanh(samples["inputs"] @ first.T + bias) @ last.T + last_bias
    labels = samples["labels"]
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]
    return float(losses.mean()), float((scores.argmax(axis=1) == labels).mean())


def _all_of(
    testbed: Testbed, port: str, judge: Judge, *, worlds: Sequence[int] = (3, 2), epochs: int = EPOCHS,
    compared: bool = True,
) -> Finding:  # fmt: skip
    """Runs a port on drawn jobs, two for each world, and judges each of them.

    compared: whether the judge needs what one process gives. Otherwise it gets the training that one would make.
    """
    expected = "a training by the rules of tasks.py"
    for place_of_world, ranks in enumerate(worlds):
        jobs = [_Job.drawn(testbed.rng, ranks, accumulated, epochs) for accumulated in BATCHES[place_of_world]]
        world = jobs[0].world
        arguments = [{"name": port, "jobs": [job.arguments(rank) for job in jobs]} for rank in range(world)]
        run = testbed.run("port", arguments=arguments)
        if run.failure:
            missing = next((name for name in FRAMEWORKS if f"No module named '{name}" in run.failure), "")
            if missing:
                cure = f"pip install 'distsim-course[frameworks]' for {missing}, or port to the other framework"
                return Finding.of(observed=run.failure, expected=expected, passed=False, where=port, hint=cure)
            return Finding.failed(run, expected)
        trainings = [job.joined([result["jobs"][place] for result in run.results]) for place, job in enumerate(jobs)]
        known = [one for one in trainings if one]
        if compared:
            one_process = testbed.run("one_process", arguments=[{"trainings": known}], student=False)
            known = one_process.results[0]["trainings"]
        alone = iter(known)
        for place, (job, training) in enumerate(zip(jobs, trainings, strict=True)):
            right = next(alone) if training else None
            if observed := judge(job, run, place, right):
                numbers = f"{job.count} samples, batches of {job.numbers['batch']}"
                where = f"{port}, {world} ranks, {numbers}, accumulated = {job.numbers['accumulated']}"
                return Finding.of(observed=observed, expected=expected, passed=False, where=where)
    return Finding.of(observed=expected, expected=expected, passed=True)


def _both(testbed: Testbed, judge: Judge, *, worlds: Sequence[int] = (3,), epochs: int = EPOCHS) -> Finding:
    """Half of the points for each port; the first one that fails is told."""
    found = [_all_of(testbed, port, judge, worlds=worlds, epochs=epochs, compared=False) for port in PORTS]
    told = next((one for one in found if one.share < 1), found[0])
    share = sum(one.share for one in found) / len(found)
    return Finding(share, told.observed, told.expected, told.where, told.hint)


def _as_one_process(job: _Job, run: Run, place: int, right: Any) -> str:
    """Parameters after every update, and the training losses."""
    results = [result["jobs"][place] for result in run.results]
    if right is None:
        told = ", ".join(str(len(found["learned"])) for found in results)
        return f"batches that are not those of {job.numbers['epochs']} epochs of whole updates: {told}, by rank"
    updates = len(right["states"])
    each = updates // job.numbers["epochs"]
    for rank, found in enumerate(results):
        if len(found["states"]) != updates:
            return f"{len(found['states'])} updates in place of {updates} on rank {rank}"
        for update, (rate, one) in enumerate(zip(found["rates"], right["rates"], strict=True)):
            if not np.isclose(rate, one, rtol=CLOSE):
                return f"a rate of {rate:.4g} in place of {one:.4g} in update {update % each} of epoch {update // each}"
        for update, (state, alone) in enumerate(zip(found["states"], right["states"], strict=True)):
            if not np.allclose(state, alone, rtol=0, atol=CLOSE):
                far, when = float(np.abs(state - alone).max()), divmod(update, each)
                return f"rank {rank}'s parameters differ by {far:.2g} after update {when[1]} of epoch {when[0]}"
        if len(found["rows"]) != job.numbers["epochs"]:
            return f"{len(found['rows'])} elements in the list that rank {rank} returns"
        for epoch, (row, loss, tested) in enumerate(zip(found["rows"], right["losses"], right["tested"], strict=True)):
            if len(row) != len(tested) + 1:
                return f"{len(row)} numbers for epoch {epoch} on rank {rank}"
            if not np.isclose(row[0], loss, rtol=TOLD):
                return f"a training loss of {row[0]:.6g} in place of {loss:.6g} on rank {rank}, epoch {epoch}"
            if not np.allclose(row[1:], tested, rtol=TOLD):
                return f"{_listed(row[1:])} in place of {_listed(tested)} on the test data, rank {rank}, epoch {epoch}"
    return ""


def _by_the_framework(job: _Job, run: Run, place: int, right: Any) -> str:
    """As one process, and by backwards of the framework."""
    for rank, result in enumerate(run.results):
        found = result["jobs"][place]
        if found["backwards"] != len(found["learned"]):
            return f"{found['backwards']} of {len(found['learned'])} backwards on rank {rank} are made by a framework"
    return _as_one_process(job, run, place, right)


def _samples_of_epochs(job: _Job, run: Run, place: int, right: Any) -> str:  # noqa: ARG001
    """Every sample in every epoch, few of them twice, as many on each rank, and another order each time."""
    by_rank = [job.epochs_of(result["jobs"][place]) for result in run.results]
    if any(one is None for one in by_rank):
        return f"batches that are not of {job.numbers['epochs']} whole epochs of training samples"
    orders, doubled = [], []
    for epoch, of_ranks in enumerate(zip(*[one or [] for one in by_rank], strict=True)):
        own = [[sample for batch in batches for sample in batch] for batches in of_ranks]
        taken = Counter(sample for samples in own for sample in samples)
        if len(taken) < job.count:
            return f"{job.count - len(taken)} of {job.count} samples are missing in epoch {epoch}"
        if len({len(samples) for samples in own}) > 1:
            return f"{_listed(map(len, own))} samples, by rank, in epoch {epoch}"
        if taken.total() - job.count >= job.world * job.numbers["batch"]:
            return f"{taken.total()} samples in place of {job.count} in epoch {epoch}"
        if max(map(len, (batch for batches in of_ranks for batch in batches))) > job.numbers["batch"]:
            return f"a batch of more than {job.numbers['batch']} samples in epoch {epoch}"
        orders.append(own)
        doubled.append({sample for sample, times in taken.items() if times > 1})
    for (epoch, before), (later, after) in combinations(enumerate(orders), 2):
        if before == after:
            return f"the same order in epochs {epoch} and {later}"
        if all(set(one) == set(other) for one, other in zip(before, after, strict=True)):
            return f"each rank has the same samples in epochs {epoch} and {later}"
        pairs, again = ({two for samples in own for two in pairwise(samples)} for own in (before, after))
        if len(pairs & again) > len(pairs) / 2:
            return f"the order of epoch {later} follows from that of epoch {epoch}: it is not drawn anew"
    if doubled[0] and all(one == doubled[0] for one in doubled):
        return f"sample {min(doubled[0])} is taken twice in every epoch: it is not the first one of a new order"
    if any(samples == sorted(samples) for own in orders for samples in own):
        return "samples that are not shuffled"
    return ""


def _saved(job: _Job, run: Run, place: int, right: Any) -> str:  # noqa: ARG001
    """Once for each epoch, by rank 0 alone, after the last update, under the model's names, before any rank returns."""
    results = [result["jobs"][place] for result in run.results]
    ends = [one.end_seconds for one in run.log.busy if one.kind == "save"]
    for rank, found in enumerate(results):
        wanted = job.numbers["epochs"] if rank == 0 else 0
        if len(found["saves"]) != wanted:
            return f"rank {rank} calls job.save {len(found['saves'])} times"
        if found["files"]:
            return f"rank {rank} writes {found['files'][0]}"
        for epoch, save in enumerate(found["saves"]):
            if not save["trains"]:
                return f"rank {rank} calls job.save in another thread than the one that trains"
            if save["names"] != NAMES:
                return f"the names {', '.join(save['names'][:2])}, ..."
            each = len(found["states"]) // wanted
            state = found["states"][min((epoch + 1) * each, len(found["states"])) - 1] if each else save["numbers"][:0]
            if save["numbers"].shape != state.shape or not np.array_equal(save["numbers"], state):
                return f"save {epoch} has other parameters than there are after epoch {epoch}"
        own = job.numbers["epochs"] * (place + 1)  # the saves of the jobs so far
        if found["returned"] < max(sorted(ends)[:own], default=0.0) - CLOSE:
            return f"rank {rank} returns before the last file is written"
    return ""


def _exchanged(job: _Job, run: Run, place: int, right: Any) -> str:
    """Bytes of the whole run; judged with its last job, in which all updates are known."""
    known = [len(result["states"]) for result in run.results[0]["jobs"]]
    if right is None:
        return f"batches that are not those of {job.numbers['epochs']} epochs of whole updates"
    if place < len(known) - 1:
        return ""
    travelled = sum(one.num_bytes for one in run.log.collectives if one.kind in REDUCTIONS)
    travelled += sum(one.num_bytes for one in run.log.messages)
    wanted = GRADIENT_BYTES * sum(known)
    if not wanted <= travelled < wanted + GRADIENT_BYTES:
        return f"{travelled / GRADIENT_BYTES:.2f} times the bytes of all gradients in {sum(known)} updates"
    return ""


def _too_much(run: Run, most_bytes: int, most: int) -> str:
    """What is wrong about the messages of a run."""
    travelled = sum(one.num_bytes for one in run.log.collectives) + sum(one.num_bytes for one in run.log.messages)
    if len(run.log.collectives) > most or run.log.messages:
        return f"{len(run.log.collectives)} collectives and {len(run.log.messages)} messages for {most} evaluations"
    return f"{travelled} bytes in {most} evaluations" if travelled > most_bytes else ""


def _samples(rng: np.random.Generator, count: int) -> dict[str, Array]:
    """Samples whose first numbers tell them apart, and their classes."""
    return {"inputs": rng.normal(size=(count, WIDTH)), "labels": rng.integers(0, CLASSES, size=count)}


def _listed(numbers: Any) -> str:
    return ", ".join(f"{one:.4g}" for one in numbers)
