"""The exercises of chapter 02: what is right, and what is known to go wrong, both computed."""

from functools import cache

import numpy as np

from distsim.course import Judged, exercise, function, number
from distsim.learning.batches import Batches
from distsim.learning.rates import effective_batch
from distsim.learning.torch_model import TorchModel
from distsim.theory.collectives import all_reduce_bytes_per_worker, parameter_server_seconds, server_link_bytes
from distsim.workload import TRAINING_SAMPLES

SAMPLES = TRAINING_SAMPLES["mlp"]
WORKERS, EIGHT, BATCH = 4, 8, 8
GRADIENT_BYTES = 4 * 2**20
COMPUTE_SECONDS = 0.04
LINK = {"bytes_per_second": 10e9 / 8, "latency_seconds": 50e-6}
RATE = 0.05
STEPS = 20
MANY = 16  # workers
ENTRIES = [  # of a gradient, and the samples of each worker
    ([1.0, 2.0, 3.0, 6.0], [8, 8, 8, 8]),
    ([1.0, 2.0, 3.0, 6.0], [8, 8, 8, 5]),
    ([-4.0, 0.5], [32, 1]),
    ([7.0], [8]),
]


def steps_of(workers: int, batch: int) -> int:
    """Of an epoch of the digits."""
    return Batches(SAMPLES, workers, batch, seed=0).steps_per_epoch


def with_server_seconds(workers: int) -> float:
    """A step by the chapter's formula."""
    return COMPUTE_SECONDS + parameter_server_seconds(GRADIENT_BYTES, workers, **LINK)


def first_crowded() -> int:
    """The fewest workers with which a step takes more than twice its computation."""
    return next(workers for workers in range(1, 1000) if with_server_seconds(workers) > 2 * COMPUTE_SECONDS)


def weighted_mean(gradients: list[float], samples: list[int]) -> float:
    """Of the joined batch: each sample counts as much as the others."""
    return sum(gradient * own for gradient, own in zip(gradients, samples, strict=True)) / sum(samples)


@cache
def distances() -> tuple[float, float]:
    """Between the first two copies of a model, with starts of their own and averaged gradients: before and after."""
    objective = TorchModel.of("mlp")
    batches = Batches(objective.samples, WORKERS, BATCH, seed=0)
    copies = [objective.start(seed=worker) for worker in range(WORKERS)]
    before = float(np.linalg.norm(copies[0] - copies[1]))
    for step in range(STEPS):
        found = [objective.gradient(own, batches.of(worker, step))[1] for worker, own in enumerate(copies)]
        mean = np.mean(found, axis=0)
        copies = [own - RATE * mean for own in copies]
    return before, float(np.linalg.norm(copies[0] - copies[1]))


@exercise(
    points=1,
    hint="How many samples does one update take, and how often does that go into all of them?",
    because="An epoch is one look at each sample, so an update of twice as many samples leaves half as many updates.",
)
def epoch_steps(answer: object) -> Judged:
    """Updates of an epoch with twice the workers."""
    samples = effective_batch(EIGHT, BATCH)
    return number(
        answer,
        right=steps_of(EIGHT, BATCH),
        tolerance=0.0,
        wrong={
            SAMPLES / samples: "The samples left over make an update as well: a smaller one, or one that is filled up.",
            SAMPLES
            // samples: "The samples left over make an update as well: a smaller one, or one that is filled up.",
            steps_of(1, BATCH): "That is one worker alone; here all of them take samples in each step.",
            steps_of(WORKERS, BATCH): "That is the epoch with four workers.",
            steps_of(1, SAMPLES // EIGHT): "That counts the workers' shares; an epoch is counted in updates.",
        },
    )


@exercise(
    points=2,
    hint="In the joined batch every sample counts as much as any other: how much then does each worker count?",
    because="With equal batches that is the plain mean, which is why nobody notices until the last batch of an epoch.",
)
def effective_gradient(answer: object) -> Judged:
    """One entry of the joined batch's gradient, from those of the workers' batches."""
    return function(
        answer,
        right=weighted_mean,
        inputs=ENTRIES,
        relative=1e-6,  # torch computes in float32
        wrong={
            lambda gradients, samples: sum(gradients) / len(samples): (
                "That is the mean of the workers, and a worker with few samples counts as much as one with many."
            ),
            lambda gradients, samples: weighted_mean(gradients, samples) * sum(samples): (
                "That is the sum over all samples; what has it to be divided by?"
            ),
            lambda gradients, samples: weighted_mean(gradients, samples) * sum(samples) / len(samples): (
                "That divides by the workers; the mean is over samples."
            ),
            lambda gradients, samples: sum(gradients) + 0 * len(samples): "That is the sum of the workers' gradients.",
        },
    )


@exercise(
    points=2,
    hint="What does a step do to the difference of two copies, if both are moved by the same vector?",
    because="The averaged gradient moves all copies alike, so it keeps them equal but never makes them equal.",
)
def distance_ratio(answer: object) -> Judged:
    """How far two copies with starts of their own are apart in the end, over how far they were."""
    before, after = distances()
    return number(
        answer,
        right=after / before,
        tolerance=0.005,
        wrong={
            0: "Nothing pulls the copies together: look at what is subtracted from each.",
            after: "That is the distance in the end; divide it by the one at the start.",
        },
    )


@exercise(
    points=2,
    hint="Twice the computation means that the exchange takes as long as the computation. Which term grows with N?",
    because=(
        f"Around a ring, {MANY} workers need "
        f"{all_reduce_bytes_per_worker(GRADIENT_BYTES, MANY) / 1e6:.1f} MB of each link and step, in place of the "
        f"server's {server_link_bytes(GRADIENT_BYTES, MANY) / 1e6:.1f} MB."
    ),
)
def crowded_server(answer: object) -> Judged:
    """The fewest workers with which a step through one server takes more than twice its computation."""
    right = first_crowded()
    one_way = next(
        workers for workers in range(1, 1000) if (with_server_seconds(workers) - COMPUTE_SECONDS) / 2 > COMPUTE_SECONDS
    )
    return number(
        answer,
        right=right,
        tolerance=0.0,
        wrong={
            right - 1: "With so many it is still less than twice.",
            one_way: "Gradients go to the server, and something comes back: both ways take their time.",
        },
    )
