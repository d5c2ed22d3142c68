"""The exercises of chapter 03: what is right, and what is known to go wrong, both computed."""

from itertools import count

from distsim import simulate, summary
from distsim.accuracy.free_communication import free
from distsim.compute import Compute
from distsim.course import Judged, design, exercise, function, number
from distsim.course.design import FAR_PCT, Changes
from distsim.distributions import Constant
from distsim.learning.experiments.backups import STRAGGLERS, WORKERS
from distsim.scenario import Scenario
from distsim.theory.order_statistics import WorkerTime, exponential_seconds
from distsim.theory.stragglers import cancelled_backup_step_seconds, synchronous_step_seconds, worker_times

BACKUPS = 4
TIMES = worker_times(Compute(**STRAGGLERS.compute), WORKERS)
ALL_SECONDS, FIRST_SECONDS = (cancelled_backup_step_seconds(TIMES, backups) for backups in (0, BACKUPS))
FEW_PAUSES = 100  # in the run of DROPPED: so few say little about the long run
DROPPED = free({"kind": "backup", "backups": 1}, {"mean": "50 ms"}, workers=8, steps=20_000)
TIMES_KEYS = tuple(f"compute.{key}" for key in ("distribution", "mean", "cv", "alpha", "pauses", "slow"))


def waiting_share(workers: int) -> float:
    """The share of its time that a worker waits, of so many with exponential times."""
    return 1.0 - 1.0 / exponential_seconds(1.0, workers, workers)


FEWEST = next(workers for workers in count(1) if waiting_share(workers) > 0.5)


def paused_seconds(workers: int, mean: float, probability: float, pause: float) -> float:
    """The mean step where only pauses vary."""
    time = WorkerTime(Constant(mean), pause_probability=probability, pause_seconds=pause)
    return synchronous_step_seconds([time] * workers)


@exercise(
    points=1,
    hint="A worker computes for the mean of one time in a step as long as the mean of the slowest, m times H_N.",
    because=f"Of {FEWEST} workers each waits {100 * waiting_share(FEWEST):.0f} % of its time.",
)
def half_waiting(answer: object) -> Judged:
    """With how many workers do they wait for more than half of their time?"""
    return number(
        answer,
        right=FEWEST,
        tolerance=0,
        wrong={
            FEWEST - 1: f"So many wait {100 * waiting_share(FEWEST - 1):.0f} % of their time: not yet half.",
            FEWEST + 1: "They do, but so do fewer.",
        },
    )


@exercise(
    points=2,
    hint="The step is longer by one pause as soon as anybody pauses. How probable is it that nobody does?",
    because="Pauses of several workers overlap, so a step never has more than one.",
)
def paused_step(answer: object) -> Judged:
    """A function: the mean step where only pauses vary."""
    return function(
        answer,
        right=paused_seconds,
        inputs=[(1, 0.05, 0.02, 0.5), (16, 0.05, 0.02, 0.5), (100, 1.0, 0.03, 10.0), (8, 0.05, 0.0, 0.5)],
        relative=1e-6,
        wrong={
            lambda workers, mean, probability, pause: (  # noqa: ARG005
                mean + probability * pause
            ): "That is the mean time of one worker, and the step waits for all of them.",
            lambda workers, mean, probability, pause: (
                mean + workers * probability * pause
            ): "That counts two workers that pause at once as two pauses, one after the other.",
            lambda workers, mean, probability, pause: (
                mean + (1 - probability) ** workers * pause
            ): "That is the probability that nobody pauses.",
            lambda workers, mean, probability, pause: (  # noqa: ARG005
                mean + pause
            ): "That is a step in which somebody pauses.",
        },
    )


@exercise(
    points=2,
    hint="Seconds to the target are updates times seconds per update; the two products are equal.",
    because="In the table of section 9 the updates grew by a far smaller factor.",
)
def break_even(answer: object) -> Judged:
    """How many times as many updates may four backups cost?"""
    return number(
        answer,
        right=ALL_SECONDS / FIRST_SECONDS,
        relative=0.01,
        wrong={
            FIRST_SECONDS / ALL_SECONDS: "The other way round: it is above 1.",
            WORKERS / (WORKERS - BACKUPS): "That is how much larger a batch of all of them is.",
            ALL_SECONDS: "That is how long an update of all of them takes.",
            FIRST_SECONDS: "That is how long an update of the first twelve takes.",
            ALL_SECONDS - FIRST_SECONDS: "A factor is asked for, not a difference.",
        },
    )


def stopped_error_pct(scenario: Scenario) -> float:
    """The step by the formula for late workers that are stopped, against the simulation, which drops late gradients."""
    times = worker_times(scenario.compute, scenario.cluster.workers)
    formula = cancelled_backup_step_seconds(times, scenario.policy.backups)
    return 100 * (formula / summary(simulate(scenario)).step_seconds.mean - 1)


def late_feedback(error: float, changes: Changes) -> str:
    """What to try where the formula is not too short by enough."""
    compute = DROPPED.replacing(dict(changes)).compute
    if compute.pauses and compute.pauses.probability * DROPPED.steps * DROPPED.cluster.workers < FEW_PAUSES:
        return "In these 20,000 steps hardly anybody paused: make pauses frequent enough to be met."
    if error < -FAR_PCT / 4:
        return "The direction is right: late workers are late again in the next step, but not late enough."
    if "compute.slow" in changes:
        return "The formula knows which workers are always slow. Which delays come and go?"
    return "Late workers catch up too soon: how long are the longest times, compared with a usual step?"


@exercise(
    points=3,
    hint="A late worker that is not stopped begins its next step late. When is it late in that step too?",
    because="The formula draws all times anew in each step. A worker that is far behind stays behind.",
)
def late_again(answer: object) -> Judged:
    """Compute times for which the formula of stopped workers is too short where late gradients are dropped."""
    return design(
        answer,
        scenario=DROPPED,
        changeable=TIMES_KEYS,
        error_pct=stopped_error_pct,
        far=lambda error: error < -FAR_PCT,
        otherwise=late_feedback,
    )
