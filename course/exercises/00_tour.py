"""The exercises of chapter 00: what is right, and what is known to go wrong, both computed."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from distsim import example, simulate, summary
from distsim.course import Judged, design, exercise, function, number
from distsim.scenario import Scenario
from distsim.theory import collectives, stragglers

SCENARIO = example("synchronous_ring")
WORKERS = SCENARIO.cluster.workers
MEAN_MS = 1e3 * SCENARIO.compute.mean_of_batch(SCENARIO.workload.batch)


def slowest_ms(workers: int) -> float:
    """The mean of the slowest of so many workers."""
    return 1e3 * stragglers.synchronous_step_seconds(stragglers.worker_times(SCENARIO.compute, workers))


def ring_ms(workers: int) -> float:
    """The ring all-reduce among so many workers."""
    return 1e3 * collectives.ring_all_reduce_seconds(
        num_bytes=SCENARIO.gradient_bytes,
        workers=workers,
        bytes_per_second=SCENARIO.cluster.bandwidth_bytes_per_second,
        latency_seconds=SCENARIO.cluster.latency_seconds,
    )


def step_ms(workers: int) -> float:
    """The step by the formula."""
    return slowest_ms(workers) + ring_ms(workers)


LONGER_PCT = 100 * (step_ms(2 * WORKERS) / step_ms(WORKERS) - 1)


@cache
def with_server_ms(workers: int, backups: int) -> float:
    """The mean step of the explorer's scenario, simulated."""
    changed = example("backup_server").replacing({"cluster.workers": workers, "policy.backups": backups})
    return 1e3 * summary(simulate(changed)).step_seconds.mean


@exercise(
    points=2,
    hint="Two terms change: the slowest is now one of eight, and the ring has more rounds with smaller pieces.",
    because=f"Twice the workers, and a step takes {LONGER_PCT:.0f} % longer: the slowest of eight is later than that of four.",
)
def eight_workers(answer: object) -> Judged:
    """The step by the formula, with eight workers."""
    before, twice = step_ms(WORKERS), 2 * WORKERS
    return number(
        answer,
        right=step_ms(twice),
        relative=0.005,
        unit="ms",
        wrong={
            before: "That is the step of four workers.",
            2 * before: "Workers compute at the same time: twice as many do not take twice as long.",
            MEAN_MS + ring_ms(twice): "That takes the mean worker, and the step waits for the slowest.",
            slowest_ms(twice): "The gradients must travel, too.",
            slowest_ms(twice) + ring_ms(WORKERS): "The ring has eight workers as well.",
        },
    )


@exercise(
    points=1,
    hint="When all workers are equally fast, how long does the slowest take?",
    because=f"So {slowest_ms(WORKERS) - MEAN_MS:.1f} ms of each step come from variation alone.",
)
def no_variation(answer: object) -> Judged:
    """The step by the formula, when every computation takes its mean."""
    return number(
        answer,
        right=MEAN_MS + ring_ms(WORKERS),
        relative=0.005,
        unit="ms",
        wrong={
            step_ms(WORKERS): "That is the step with variation.",
            MEAN_MS: "The gradients must travel, too.",
            slowest_ms(WORKERS): "Without variation the slowest takes no longer than the others.",
        },
    )


@exercise(
    points=2,
    hint="The error is the prediction less the measurement, in percent of the measurement; its sign is kept.",
    because="A negative error says that the prediction was too short.",
)
def error_pct(answer: object) -> Judged:
    """A function of prediction and measurement."""
    return function(
        answer,
        right=lambda predicted, measured: 100 * (predicted - measured) / measured,
        inputs=[(70.0, 80.0), (90.0, 80.0), (80.0, 80.0), (1.0, 4.0)],
        wrong={
            lambda predicted, measured: 100 * (measured - predicted) / measured: "Its sign is the other way round.",
            lambda predicted, measured: (
                100 * abs(predicted - measured) / measured
            ): "Too short and too long must differ.",
            lambda predicted, measured: (
                100 * (predicted - measured) / predicted
            ): "Percent of the measurement is asked for.",
            lambda predicted, measured: (predicted - measured) / measured: "That is a share; percent is asked for.",
        },
    )


@exercise(
    points=2,
    hint='Simulate `distsim.example("backup_server")` as it is, and with four workers and no backup.',
    because="It is no gift: a fifth machine computes, and at nearly every step somebody's gradient is thrown away.",
)
def backup_gain(answer: object) -> Judged:
    """What one backup worker saves of a mean step, both updates made of four gradients."""
    alone, five = with_server_ms(WORKERS, 0), with_server_ms(WORKERS + 1, 1)
    return number(
        answer,
        right=alone - five,
        tolerance=0.15,
        unit="ms",
        wrong={
            five - alone: "The other way round: what is saved is positive.",
            with_server_ms(WORKERS + 1, 0)
            - five: "There five gradients make an update and here four: compare like with like.",
            alone: "That is a step without a backup; what is saved is asked for.",
            five: "That is a step with a backup; what is saved is asked for.",
        },
    )


def formula_error_pct(scenario: Scenario) -> float:
    """The chapter's formula against the mean step of one simulated run."""
    cluster = scenario.cluster
    slowest = stragglers.synchronous_step_seconds(stragglers.worker_times(scenario.compute, cluster.workers))
    ring = collectives.ring_all_reduce_seconds(
        scenario.gradient_bytes, cluster.workers, cluster.bandwidth_bytes_per_second, cluster.latency_seconds
    )
    return 100 * ((slowest + ring) / summary(simulate(scenario)).step_seconds.mean - 1)


def without_luck(error: float, changes: Mapping[str, Any]) -> str:
    """What keeps a run of 200 draws near the mean of all draws."""
    own = {**changes, **{f"compute.{key}": value for key, value in dict(changes.get("compute") or {}).items()}}
    if "compute.pauses" in own:
        paused = WORKERS * SCENARIO.steps * float((own["compute.pauses"] or {}).get("probability", 0.0))
        if paused >= 1:
            return f"Of the 200 draws, {paused:.3g} pause on average, and this run met about that many."
        return "A run seldom meets one of these pauses, but they are too short to change the mean of all draws much."
    if "compute.slow" in own:
        return "The formula knows how slow each worker is."
    if abs(error) > 10.0:
        return "This is the right direction: long times are seldom drawn. How can they be still rarer, and longer?"
    return (
        "Four workers draw 200 times in this run, so its mean is near the mean of all draws. "
        "Which event may be absent from 200 draws?"
    )


@exercise(
    points=2,
    hint="What happens so seldom that fifty steps may not meet it, and lasts so long that it counts in the mean?",
    because="A mean over all draws may be far from every single run, and no error bar of a few runs shows it.",
)
def unlucky(answer: object) -> Judged:
    """Compute times for which the formula is far from a run of fifty steps."""
    return design(
        answer,
        scenario=SCENARIO,
        changeable=tuple(f"compute.{key}" for key in ("distribution", "mean", "cv", "alpha", "pauses", "slow")),
        error_pct=formula_error_pct,
        otherwise=without_luck,
    )
