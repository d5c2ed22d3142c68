"""The exercises of chapter 02: what is right, and what is known to go wrong, both computed."""

from functools import cache

import numpy as np

from distsim import simulate, summary
from distsim.course import Judged, design, exercise, function, number
from distsim.learning.batches import Batches
from distsim.learning.rates import effective_batch
from distsim.learning.torch_model import TorchModel
from distsim.scenario import Scenario
from distsim.theory.collectives import parameter_server_seconds
from distsim.workload import TRAINING_SAMPLES

SAMPLES = TRAINING_SAMPLES["mlp"]
WORKERS, EIGHT, BATCH = 4, 8, 8
RATE = 0.05
STEPS = 20
SCENARIO = Scenario.of(
    {
        "name": "one-step",
        "steps": 4000,  # so that the median hardly depends on the draws
        "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
        "compute": {"mean": "40 ms"},
        "workload": {"gradient": "4 MiB", "batch": BATCH},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "parameter_server"},
    }
)
CHANGEABLE = (
    *(f"cluster.{key}" for key in ("workers", "bandwidth", "latency", "nic")),
    *(f"compute.{key}" for key in ("distribution", "mean", "cv", "alpha", "slow", "pauses")),
    "workload.gradient",
)
ENTRIES = [  # of a gradient, and the samples of each worker
    ([1.0, 2.0, 3.0, 6.0], [8, 8, 8, 8]),
    ([1.0, 2.0, 3.0, 6.0], [8, 8, 8, 5]),
    ([-4.0, 0.5], [32, 1]),
    ([7.0], [8]),
]


def steps_of(workers: int, batch: int) -> int:
    """Of an epoch of the digits."""
    return Batches(SAMPLES, workers, batch, seed=0).steps_per_epoch


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


def formula_error_pct(scenario: Scenario) -> float:
    """The chapter's formula of a step through one server, against the median simulated step."""
    link = scenario.cluster.bandwidth_bytes_per_second, scenario.cluster.latency_seconds
    exchange = parameter_server_seconds(scenario.gradient_bytes, scenario.cluster.workers, *link)
    formula = scenario.compute.mean_of_batch(scenario.workload.batch) + exchange
    return 100 * (formula / summary(simulate(scenario)).step_seconds.median - 1)


@exercise(
    points=3,
    hint="The formula has one compute time for all workers and one bandwidth for all links. Make one of them differ.",
    because="A step ends with its slowest worker, and with its slowest link. A formula of means knows neither.",
)
def step_design(answer: object) -> Judged:
    """Changes of the chapter's scenario with which its formula of a step fails."""
    return design(
        answer,
        scenario=SCENARIO,
        changeable=CHANGEABLE,
        error_pct=formula_error_pct,
        otherwise=lambda error, _: (
            "The formula holds here: all workers and links are alike, or their difference hardly changes the median step."
            if abs(error) < 1.0
            else "The formula is off, but not by 20 %. Which difference between workers or links could grow without a limit?"
        ),
    )
