"""The exercises of chapter 12: what is right, and what is known to go wrong, both computed."""

import math

import numpy as np

from distsim import example
from distsim.course import Judged, design, exercise, function, number
from distsim.course.design import FAR_PCT, Changes
from distsim.engine.failures import wall_clock
from distsim.learning.rates import scaled
from distsim.scenario import Scenario
from distsim.theory.checkpointing import system_mean_time_between_seconds, young_interval_seconds

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MANY, RARELY = 1000, 500 * DAY  # workers, and the time between two failures of one
SOME, SOMETIMES, SAVE = 192, 30 * DAY, 30.0
WORKERS, SAMPLES, RATE, DEAD = 48, 16, 0.6, 12
SEEDS = range(20)
RARE = example("synchronous_ring").replacing(
    {
        "cluster.workers": 64,
        "compute": {"mean": "1 min"},
        "workload.gradient": "0 B",
        "steps": 2400,
        "failures": {
            "mean_time_between": "60 d",
            "checkpoint_every": "1 h",
            "checkpoint_cost": "1 min",
            "restart_cost": "2 min",
        },
    }
)
CHANGEABLE = (
    "cluster.workers", "failures.mean_time_between", "failures.checkpoint_every", "failures.checkpoint_cost",
    "failures.restart_cost",
)  # fmt: skip


FAILURE_HOURS = system_mean_time_between_seconds(RARELY, MANY) / HOUR


@exercise(
    points=1,
    hint="How many failures do all workers together have in the time in which one has one?",
    because="A run of a month has some sixty failures, so it must come back from each without a person.",
)
def failure_hours(answer: object) -> Judged:
    """The mean time between two failures of the whole run."""
    return number(
        answer,
        right=FAILURE_HOURS,
        unit="h",
        wrong={
            RARELY / HOUR: "That is one worker alone.",
            RARELY / DAY / MANY: "That is in days.",
            60 * FAILURE_HOURS: "That is in minutes.",
            MANY * RARELY / DAY: "More workers fail more often.",
        },
    )


BETWEEN = system_mean_time_between_seconds(SOMETIMES, SOME)
YOUNG_MINUTES = young_interval_seconds(SAVE, BETWEEN) / MINUTE


@exercise(
    points=2,
    hint="First the time between two failures of the whole run. Then Young's formula, with one unit for both times.",
    because=f"The run fails every {BETWEEN / HOUR:.1f} hours. A save that takes a quarter of the time halves the interval.",
)
def young_minutes(answer: object) -> Judged:
    """Young's interval."""
    return number(
        answer,
        right=YOUNG_MINUTES,
        relative=0.005,
        unit="min",
        wrong={
            young_interval_seconds(SAVE, SOMETIMES) / MINUTE: "All the workers fail, not one alone.",
            YOUNG_MINUTES
            / math.sqrt(
                2
            ): "A failure loses half an interval on average: the root is of twice save times time between failures.",
            YOUNG_MINUTES * MINUTE: "That is in seconds.",
            YOUNG_MINUTES * math.sqrt(MINUTE): "The save takes half a minute, not 30 minutes.",
            BETWEEN / MINUTE: "That is the time between two failures.",
        },
    )


@exercise(
    points=2,
    hint="Two parts: the save of each interval, and the work that a failure undoes.",
    because="Young's interval is the one at which both parts are equal.",
)
def lost_share(answer: object) -> Judged:
    """A function of the interval, the save and the time between failures."""
    return function(
        answer,
        right=lambda every, save, between: save / every + every / (2 * between),
        inputs=[(3600.0, 60.0, 36000.0), (600.0, 60.0, 36000.0), (1800.0, 5.0, 7200.0), (100.0, 0.0, 1000.0)],
        wrong={
            lambda every, save, between: save / every + every / between: (
                "A failure comes anywhere in an interval, not always at its end."
            ),
            lambda every, save, _: save / every: "And the work that failures undo?",
            lambda every, _, between: every / (2 * between): "And the saves?",
            lambda every, save, between: 1 - save / every - every / (2 * between): (
                "That is what is left. The lost share is asked for."
            ),
            lambda every, save, between: save / every + between / (2 * every): (
                "The longer the time between failures, the less they undo."
            ),
        },
    )


LEFT = WORKERS - DEAD


@exercise(
    points=2,
    hint="What is the effective batch before, and after? Linear scaling is in proportion to it.",
    because="The other way keeps the batch and the rate: then each of those that are left takes more samples.",
)
def rate_of_those_left(answer: object) -> Judged:
    """The learning rate of a smaller world with the same batch of each worker."""
    return number(
        answer,
        right=scaled(RATE, LEFT * SAMPLES, WORKERS * SAMPLES, "linear"),
        relative=0.005,
        wrong={
            RATE: "That is right where the batch stays. Here it shrinks.",
            scaled(RATE, LEFT * SAMPLES, WORKERS * SAMPLES, "square_root"): "That is the rule for Adam.",
            RATE * DEAD / WORKERS: "That is the share of those that died.",
            RATE * WORKERS / LEFT: "A smaller batch needs a lower rate.",
        },
    )


def goodput_share(scenario: Scenario) -> float:
    """Of the whole time of twenty runs, the share that is useful."""
    assert scenario.failures is not None
    updates = np.arange(1, scenario.steps + 1) * scenario.compute.mean_seconds
    workers = scenario.cluster.workers
    clocks = [wall_clock(updates, scenario.failures, seed, workers) for seed in SEEDS]
    return float(len(SEEDS) * updates[-1] / sum(clock.at(updates[-1:])[0] for clock in clocks))


def first_order_error_pct(scenario: Scenario) -> float:
    """The first-order formula of section 2 against simulated runs."""
    failures = scenario.failures
    assert failures is not None
    every, save = failures.checkpoint_every_seconds, failures.checkpoint_cost_seconds
    between = system_mean_time_between_seconds(failures.mean_time_between_seconds, scenario.cluster.workers)
    return 100.0 * ((1.0 - save / every - every / (2 * between)) / goodput_share(scenario) - 1.0)


def nearer(error: float, _: Changes) -> str:
    """The feedback where the formula is still good."""
    if abs(error) < 5.0:
        return "The formula is still right: saves and restarts are short and failures are rare, or errors cancel."
    return "This is the right direction. Make the change stronger."


@exercise(
    points=3,
    hint="What does the formula leave out, and what does it suppose of the time between failures?",
    because="It has no restart, divides a save by the work alone, and supposes that an interval seldom has a failure.",
)
def first_order_fails(answer: object) -> Judged:
    """A run of which the first-order formula is far off."""
    return design(
        answer,
        scenario=RARE,
        changeable=CHANGEABLE,
        error_pct=first_order_error_pct,
        far=lambda error: abs(error) > FAR_PCT,
        otherwise=nearer,
    )
