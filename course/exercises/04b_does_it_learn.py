"""The exercises of chapter 04b: what is right, and what is known to go wrong, both computed."""

from math import sin

import numpy as np

from distsim import simulate
from distsim.accuracy.free_communication import free
from distsim.course import Judged, design, exercise, number
from distsim.course.design import FAR_PCT, Changes
from distsim.scenario import Scenario
from distsim.theory.descent import largest_stale_rate, quadratic_floor
from distsim.theory.staleness import collision_share, mean_staleness, staleness_probability

TURNS, CURVATURE = 12, 0.001
MOMENTUM = 0.9
WORKERS, CHANGED = 8, 0.1
SYNCHRONOUS_RATE = 0.05
STEPS, FEWEST_PAUSES = 12_500, 100  # of each worker; of all workers in the simulated run
EXPONENTIAL = free({"kind": "asynchronous"}, {"distribution": "exponential", "mean": "50 ms"}, WORKERS, STEPS)
TIMES_KEYS = tuple(f"compute.{key}" for key in ("distribution", "mean", "cv", "alpha", "slow", "pauses"))


def touched_share(changed: float, staleness: float) -> float:
    """The share of the parameters that each gradient touches, from the share of a late gradient's entries changed."""
    return 1.0 - (1.0 - changed) ** (1.0 / staleness)


def rate_for_floor(floor: float, batch: int = 1) -> float:
    """The learning rate with this floor, on one parameter with curvature and noise 1: rate / (2 b (2 - rate))."""
    return 4.0 * batch * floor / (1.0 + 2.0 * batch * floor)


LARGEST_RATE, FRESH_RATE = (largest_stale_rate(staleness, CURVATURE) for staleness in (TURNS - 1, 0))
IN_DEGREES = 2.0 * sin(180 / (4 * (TURNS - 1) + 2)) / CURVATURE
OTHERS = mean_staleness(WORKERS)
TOUCHED_PCT = 100.0 * touched_share(CHANGED, OTHERS)
FLOOR = quadratic_floor([1.0], [1.0], SYNCHRONOUS_RATE, WORKERS)
ASYNCHRONOUS_RATE = rate_for_floor(FLOOR)


@exercise(
    points=2,
    hint="Workers that are exactly alike take turns. How many updates are made between two of one worker's?",
    because=f"With fresh gradients the largest rate is {FRESH_RATE / LARGEST_RATE:.0f} times as large.",
)
def largest_rate(answer: object) -> Judged:
    """The largest learning rate of workers that take turns."""
    return number(
        answer,
        right=LARGEST_RATE,
        relative=0.005,
        wrong={
            largest_stale_rate(TURNS, CURVATURE): "How many others are there?",
            FRESH_RATE: "That is right only for fresh gradients.",
            largest_stale_rate(TURNS - 1, 1.0): "That is for a curvature of 1.",
            FRESH_RATE / TURNS: "It falls with the staleness, but not as 1 / 12.",
            IN_DEGREES: "The sine is of radians.",
            LARGEST_RATE * CURVATURE**2: "The steeper the loss, the smaller the rate must be.",
        },
    )


@exercise(
    points=1,
    hint="Section 4 gives the momentum of N workers. Which N has this momentum?",
    because="With more workers than that, asynchrony alone adds more momentum than is wanted.",
)
def workers_for_momentum(answer: object) -> Judged:
    """The number of workers whose staleness adds a momentum of 0.9."""
    right = round(1.0 / (1.0 - MOMENTUM))
    return number(
        answer,
        right=right,
        tolerance=0,
        wrong={
            right - 1: "That is the mean staleness of these workers.",
            MOMENTUM: "That is the momentum. How many workers add it?",
        },
    )


@exercise(
    points=2,
    hint="First find the mean staleness of these workers. Then solve the formula of section 5 for the share.",
    because=f"Of a late gradient's entries {100 * collision_share(TOUCHED_PCT / 100, OTHERS):.0f} % are then changed.",
)
def touched_pct(answer: object) -> Judged:
    """The share of the parameters that gradients may touch."""
    return number(
        answer,
        right=TOUCHED_PCT,
        relative=0.005,
        unit="%",
        wrong={
            100.0 * touched_share(CHANGED, WORKERS): "A gradient misses the updates of the other workers only.",
            100.0 * CHANGED / OTHERS: "Two updates may change the same entry, so this is only an approximation.",
            100.0 * CHANGED: "That is the share of entries that have been changed.",
            100.0 * (1.0 - CHANGED ** (1.0 / OTHERS)): "That leaves 10 % unchanged.",
        },
    )


@exercise(
    points=2,
    hint="Set the two floors of section 6 equal. K is 8 for one of them, and 1 for the other.",
    because="The smaller rate makes each update smaller, so asynchronous training loses its early lead.",
)
def equal_floor_rate(answer: object) -> Judged:
    """The learning rate with which asynchronous training rests where synchronous training does."""
    return number(
        answer,
        right=ASYNCHRONOUS_RATE,
        relative=0.004,
        wrong={
            SYNCHRONOUS_RATE / WORKERS: "Nearly: the floor is not quite proportional to the learning rate.",
            SYNCHRONOUS_RATE: "With this rate the floor of asynchronous training is eight times as high.",
            FLOOR: "That is the floor.",
            SYNCHRONOUS_RATE * WORKERS: "A larger rate lifts the floor.",
        },
    )


def fresh_error_pct(scenario: Scenario) -> float:
    """The share of fresh gradients by the formula for exponential times, 1/N, against the simulated share."""
    fresh = float(np.mean(simulate(scenario).contributions.staleness == 0))
    return 100.0 * (staleness_probability(0, scenario.cluster.workers) / fresh - 1.0)


def seldom_paused(changes: Changes) -> bool:
    """Whether the changes have pauses, but hardly any worker meets one."""
    pauses = EXPONENTIAL.replacing(dict(changes)).compute.pauses
    return pauses is not None and pauses.probability * WORKERS * STEPS < FEWEST_PAUSES


def more_are_needed(error: float, changes: Changes) -> str:
    """The feedback where too few gradients are fresh."""
    if seldom_paused(changes):
        return "Hardly any worker pauses in this run: make pauses frequent enough to be met."
    if error > 3.0:
        return "Fresh gradients are rarer than before: the workers take turns more regularly."
    if error > -3.0:
        return "As many gradients are fresh as before: all workers still send equally many at any time."
    return "This is the right direction. How many of the eight workers still send most of the gradients?"


@exercise(
    points=3,
    hint="A gradient is fresh if its worker also made the update before. When does that happen often?",
    because="While some workers are slow or pause, most gradients come from the others, as if there were fewer workers.",
)
def more_fresh(answer: object) -> Judged:
    """Compute times with which more gradients are fresh than a share of 1/N."""
    return design(
        answer,
        scenario=EXPONENTIAL,
        changeable=TIMES_KEYS,
        error_pct=fresh_error_pct,
        far=lambda error: error < -FAR_PCT,
        otherwise=more_are_needed,
    )
