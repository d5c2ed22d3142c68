"""The exercises of chapter 04: what is right, and what is known to go wrong, both computed."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache

from distsim import example, simulate
from distsim.accuracy.free_communication import free
from distsim.compute import Compute
from distsim.course import Judged, design, exercise, function, number
from distsim.metrics import throughput_samples_per_second
from distsim.policies import Asynchronous
from distsim.scenario import Scenario
from distsim.theory.staleness import asynchronous_seconds_per_update, mean_staleness
from distsim.theory.stragglers import worker_times

WORKERS = 8
FAST_SECONDS, SLOW_FACTOR, SLOW = 0.05, 4.0, (6, 7)
LATE, LATE_FACTOR = 7, 3.0
PAUSES = {
    "distribution": "lognormal", "mean": "50 ms", "cv": 0.3, "pauses": {"probability": 0.03, "duration": "500 ms"},
}  # fmt: skip
ENOUGH = 2 / 3
STEPS, FEWER_STEPS = 4000, 1000  # pauses are rare: with 400 steps the seed decides between bounds 5 and 6
SCENARIO = example("backup_server").replacing(
    {
        "policy": {"kind": "asynchronous"}, "steps": 200, "compute.cv": 0.5, "compute.slow": {4: 3.0},
        "workload.gradient": "1 MiB",
    }
)  # fmt: skip
CHANGED = ("cluster.workers", "cluster.bandwidth", "cluster.latency", "workload.gradient")
LEAST_WORKERS, MOST_WORKERS, TOO_SHORT_PCT = 5, 16, 20.0  # worker 4 is the slow one
MOST_AHEAD = 16  # steps; a larger bound is never slower


def updates_per_second(slow: Sequence[int], factor: float, workers: int = WORKERS) -> float:
    """By workers of 50 ms, some of whom take a factor longer."""
    compute = Compute(distribution="exponential", mean="50 ms", slow=dict.fromkeys(slow, factor))
    return 1.0 / asynchronous_seconds_per_update(worker_times(compute, workers))


ALL = updates_per_second(SLOW, SLOW_FACTOR)
FAST_ALONE = updates_per_second((), 1.0, WORKERS - len(SLOW))
MEAN_SECONDS = FAST_SECONDS * (WORKERS + len(SLOW) * (SLOW_FACTOR - 1)) / WORKERS


def played(order: Sequence[int], own: int = 0, first: bool = True) -> float:
    """The mean staleness of gradients that arrive in this order of workers. own, first: what is known to go wrong."""
    rule = Asynchronous().rule(max(order) + 1)
    read: dict[int, int] = {}
    found = []
    for step, worker in enumerate(order):
        version = rule.arrived(worker, step, read.get(worker, 0)).version
        if first or worker in read:
            found.append(version - 1 - read.get(worker, 0) + own)
        read[worker] = version
    return sum(found) / len(found) if found else 0.0


def largest(order: Sequence[int]) -> float:
    """The number of workers less one: right in a long run alone."""
    return mean_staleness(max(order) + 1)


def others_seconds() -> float:
    """From one update of the seven others to the next."""
    return 1.0 / updates_per_second((), 1.0, WORKERS - 1)


SLOW_STALENESS = LATE_FACTOR * FAST_SECONDS / others_seconds()
FAST_SHARE = (WORKERS - 1) * LATE_FACTOR / ((WORKERS - 1) * LATE_FACTOR + 1)
FAST_STALENESS = (mean_staleness(WORKERS) - (1 - FAST_SHARE) * SLOW_STALENESS) / FAST_SHARE


@cache
def used_per_second(bound: int | None, workers: int = WORKERS, steps: int = STEPS) -> float:
    """Gradients, with this bound or none."""
    policy = {"kind": "asynchronous"} if bound is None else {"kind": "stale_synchronous", "staleness": bound}
    return throughput_samples_per_second(simulate(free(policy, PAUSES, workers, steps=steps)))


@cache
def smallest(workers: int = WORKERS, steps: int = STEPS) -> int:
    """The smallest bound with which ENOUGH of asynchronous training's gradients are used: by bisection."""
    enough = ENOUGH * used_per_second(None, workers, steps)
    return bisect_left(range(MOST_AHEAD), enough, key=lambda bound: used_per_second(bound, workers, steps))


@exercise(
    points=1,
    hint="How many gradients does each of the eight deliver in a second?",
    because="The mean of the times does not help: a fast worker delivers more often.",
)
def mixed_rate(answer: object) -> Judged:
    """Updates per second of fast and slow workers together."""
    return number(
        answer,
        right=ALL,
        relative=0.005,
        wrong={
            WORKERS / MEAN_SECONDS: "That takes the mean of the eight times, but fast workers deliver more often.",
            WORKERS / (SLOW_FACTOR * FAST_SECONDS): "That is right only if all workers waited for the slowest one.",
            FAST_ALONE: "The slow workers deliver, too.",
            WORKERS / FAST_SECONDS: "Two of them are slow.",
            ALL
            / WORKERS: "That is the rate of one worker, and the server makes an update from each gradient of any worker.",
            1e3 / ALL: "That is the time from one update to the next, in ms.",
            ALL / 1e3: "That is in a millisecond.",
        },
    )


@exercise(
    points=2,
    hint="Keep the version with which each worker was last answered. The first one is 0.",
    because="A server needs to know nothing else to record the staleness.",
)
def staleness_of(answer: object) -> Judged:
    """A function: the mean staleness of an order of arrivals."""
    wrong: dict[Callable[..., float], str] = {
        lambda order: played(order, own=1): "Its own update does not make a gradient stale.",
        lambda order: played(order, first=False): "Count each worker's first gradient, too: it read version 0.",
        largest: "That is the mean of a long run of all workers; these orders are short.",
    }
    return function(
        answer,
        right=played,
        inputs=[([0, 1, 0, 1],), ([0, 0, 0],), ([2, 0, 1, 1, 0, 0, 2],), ([0, 1, 2, 3] * 5,)],
        relative=1e-6,
        wrong=wrong,
    )


@exercise(
    points=1,
    hint="How many updates do the seven others make while it computes?",
    because=f"The others have a mean staleness of {FAST_STALENESS:.2f}, and the mean of all gradients is still 7.",
)
def slow_staleness(answer: object) -> Judged:
    """How stale the gradients of one slow worker are."""
    return number(
        answer,
        right=SLOW_STALENESS,
        relative=0.02,
        wrong={
            mean_staleness(WORKERS): "That is the mean over all gradients, and most of them are of fast workers.",
            LATE_FACTOR: "That is how many updates one other worker makes meanwhile.",
            LATE_FACTOR * WORKERS: "It does not make its own gradient stale.",
            LATE_FACTOR * (WORKERS - 1) + 1: "Its own update does not count.",
            FAST_STALENESS: "That is how stale the gradients of the others are.",
        },
    )


@exercise(
    points=2,
    hint="Simulate the asynchronous run, and then one bound after the other.",
    because="A pause is ten steps long, so with a bound of a few steps the workers still wait for it.",
)
def smallest_bound(answer: object) -> Judged:
    """The smallest bound that keeps two thirds of the throughput."""
    right = smallest()
    few = f"With that bound it is {100 * used_per_second(right - 1) / used_per_second(None):.0f} %: not yet enough."
    return number(
        answer,
        right=right,
        tolerance=0,
        wrong={
            right - 1: few,
            smallest(2 * WORKERS, FEWER_STEPS): "That is right for sixteen workers, and here are eight.",
            right + 1: "That is enough, but so is a smaller one. (Did you simulate 4000 steps?)",
            0: "With a bound of 0 all workers wait for each other.",
        },
    )


def without_queue_error_pct(scenario: Scenario) -> float:
    """By how much the time per update of workers that never queue differs from that of the simulation."""
    cluster, turn = scenario.cluster, scenario.gradient_bytes / scenario.cluster.bandwidth_bytes_per_second
    cycles = [
        time.mean_seconds + 2 * (cluster.latency_seconds + turn)
        for time in worker_times(scenario.compute, cluster.workers)
    ]
    run = simulate(scenario)
    return 100 * (len(run.updates) / run.total_seconds / sum(1 / cycle for cycle in cycles) - 1)


@exercise(
    points=2,
    hint="How many gradients can the server take in the time in which each worker computes one?",
    because="A full server sets the pace, however fast the workers compute.",
)
def crowded(answer: object) -> Judged:
    """Changes of the scenario with which a prediction without a queue is too short."""
    return design(
        answer,
        scenario=SCENARIO,
        changeable=CHANGED,
        least_workers=LEAST_WORKERS,
        most_workers=MOST_WORKERS,
        error_pct=without_queue_error_pct,
        far=lambda error: error < -TOO_SHORT_PCT,
        otherwise="The workers do not meet often enough. How long is a turn of the server?",
    )
