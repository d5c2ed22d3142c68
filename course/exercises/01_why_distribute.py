"""The exercises of chapter 01: what is right, and what is known to go wrong, both computed."""

import numpy as np

from distsim import simulate, summary
from distsim.compute import ComputeTimes
from distsim.course import Judged, choice, design, exercise, number
from distsim.course.design import FAR_PCT
from distsim.figures import Job, decision
from distsim.figures.decision import BOTH, BOUND, DATA, DAY, MODEL, ONE
from distsim.scenario import Scenario
from distsim.theory import memory, scaling, stragglers
from distsim.theory.collectives import ring_all_reduce_seconds

ANSWERS = [ONE, DATA, MODEL, BOTH, BOUND]
BLOOM = 176e9
STEP_SECONDS, GRADIENT, LATENCY_SECONDS = 0.4, 100e6, 50e-6
RING_OF_FOUR = Scenario.of(
    {
        "name": "ring-of-four",
        "steps": 2000,
        "cluster": {"workers": 4, "bandwidth": "10 Gbit/s", "latency": "50 us"},
        "compute": {"mean": "100 ms"},
        "workload": {"gradient": "100 MB"},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    }
)
CHANGEABLE = (*(f"compute.{key}" for key in ("distribution", "cv", "alpha", "slow", "pauses")), "cluster.nic")
GPT_2 = memory.transformer_parameters(layers=48, width=1600, vocabulary=50257, context=1024)


def fastest(bytes_per_second: float, num_bytes: float = GRADIENT) -> int:
    """The number of workers with the largest speed-up, one batch divided among all, around a ring."""

    def speed_up(workers: int) -> float:
        ring = ring_all_reduce_seconds(num_bytes, workers, bytes_per_second, LATENCY_SECONDS)
        return scaling.strong_speed_up(STEP_SECONDS, ring, workers)

    return max(range(1, 200), key=speed_up)


def told(job: Job, device_bytes: float, operations_per_second: float) -> str:
    """The picture's answer for one job and a week."""
    row = decision([job], device_bytes, operations_per_second, patience_seconds=7 * DAY).table[0]
    return str(row["answer"])


@exercise(
    points=1,
    hint="For each parameter: itself, its gradient, and what Adam keeps; 4 bytes for each number.",
    because=f"On devices of 80 GB that is {memory.devices_to_hold(memory.state_bytes(BLOOM), 80e9)} of them, before any activation.",
)
def bloom_gb(answer: object) -> Judged:
    """The state of BLOOM while it trains with Adam."""
    return number(
        answer,
        right=memory.state_bytes(BLOOM) / 1e9,
        relative=0.005,
        unit="GB",
        wrong={
            4 * BLOOM / 1e9: "Those are the parameters alone: enough to store the model, not to train it.",
            memory.state_bytes(BLOOM, "sgd") / 1e9: "Parameters and gradients; Adam keeps numbers of its own, too.",
            memory.state_bytes(BLOOM, "momentum")
            / 1e9: "Momentum keeps one number for each parameter; how many does Adam?",
            memory.state_bytes(BLOOM) / 2**30: "That is in GiB; a GB is a thousand million bytes.",
        },
    )


@exercise(
    points=2,
    hint="Two comparisons: the state with the memory of one device, and the time on one device with a week.",
    because="A second device with the whole model on it again would not help: the model, or at least its state, must be split.",
)
def fine_tuning(answer: object) -> Judged:
    """GPT-2 on ten million tokens, on a device of 16 GB."""
    job = Job("fine-tuning", memory.state_bytes(GPT_2), memory.training_operations(GPT_2, tokens=10e6))
    return choice(
        answer,
        right=told(job, device_bytes=16e9, operations_per_second=50e12),
        options=ANSWERS,
        wrong={
            ONE: "Compute the state of the model first, and compare it with 16 GB.",
            DATA: "With data parallelism every device holds the whole model.",
            BOTH: "The model is too large for one device; how long would the work take, on one?",
            BOUND: "Nothing keeps these data where they are.",
        },
    )


@exercise(
    points=2,
    hint="Take the loop of section 6 with another bandwidth, and mind that 8 bits are a byte.",
    because=f"With a tenth of the gradient it would be {fastest(25e9 / 8, GRADIENT / 10)} workers: the less travels, the more pays.",
)
def best_workers(answer: object) -> Judged:
    """The last number of workers that makes it faster, with faster links."""
    return number(
        answer,
        right=fastest(25e9 / 8),
        tolerance=1,
        wrong={
            fastest(10e9 / 8): "That is the number for links of 10 Gbit/s.",
            fastest(1e30): "Those links are too fast: the gradient has bytes, and a byte has 8 bits.",
            128: "Try the numbers in between: doubling is too coarse.",
        },
    )


def expected_step_seconds(scenario: Scenario) -> float:
    """The mean step over all draws: of the simulated run, corrected for the luck of its draws.

    The correction is the expected compute time of the slowest worker less its mean in the run. So pauses that are too
    rare for the run count as well.
    """
    workers, steps = scenario.cluster.workers, scenario.steps
    drawn = ComputeTimes(scenario.compute, scenario.seed, scenario.workload.batch)
    slowest = np.max([drawn.first(worker, steps)[:steps] for worker in range(workers)], axis=0)
    expected = stragglers.synchronous_step_seconds(stragglers.worker_times(scenario.compute, workers))
    return summary(simulate(scenario)).step_seconds.mean + expected - float(slowest.mean())


def promised_error_pct(scenario: Scenario) -> float:
    """The chapter's formula of the speed-up against the simulation, with the batch divided evenly."""
    cluster = scenario.cluster
    link = cluster.bandwidth_bytes_per_second, cluster.latency_seconds
    ring = ring_all_reduce_seconds(scenario.gradient_bytes, cluster.workers, *link)
    promised = scaling.strong_speed_up(STEP_SECONDS, ring, cluster.workers)
    return 100 * (promised * expected_step_seconds(scenario) / STEP_SECONDS - 1)


def kept(error: float, _: object) -> str:
    """Why the formula's promise is not broken far enough."""
    if abs(error) < 1.0:
        return "The formula holds: on average, a step takes as long as the formula says."
    if error < 0:
        return "Now the formula promises too little: a step has become shorter. Make steps longer."
    return "This is the right direction. Make the difference larger."


@exercise(
    points=3,
    hint="The formula divides the work by the number of workers. When does a step last longer than a mean share of it?",
    because="A step waits for its slowest worker and its slowest link, so equal means do not make an equal speed-up.",
)
def promised(answer: object) -> Judged:
    """Changes of the chapter's scenario with which the formula promises too much."""
    return design(
        answer,
        scenario=RING_OF_FOUR,
        changeable=CHANGEABLE,
        error_pct=promised_error_pct,
        far=lambda error: error > FAR_PCT,
        otherwise=kept,
    )
