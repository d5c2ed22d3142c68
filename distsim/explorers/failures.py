"""Failures and checkpoints: how often should a run save its state, and what do failures cost even then?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import tee

from distsim.arrays import Floats
from distsim.engine.failures import failing, goals, played
from distsim.errors import InputError
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Slider
from distsim.explorers.explorer import Explorer
from distsim.failures import Failures
from distsim.figures import checkpoints
from distsim.figures.captioned import Captioned
from distsim.figures.checkpoints import BY_FORMULA, MINUTES, OF_RUNS
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.checkpointing import best_interval_seconds, goodput, system_mean_time_between_seconds
from distsim.units import duration

STEPS, STEP_SECONDS = 2400, 60.0
SEEDS = 6
INTERVALS = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 480.0, 960.0)
BESIDE = (0.2, 5.0)  # times the best interval: runs are simulated there, too
LEAST_GOODPUT = 0.25


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    mean_time_between_days: between two failures of one worker. checkpoint_seconds: to write a checkpoint.
    restart_seconds: to come back after a failure. interval_minutes: of useful work between two checkpoints. seed: of
    the first of six runs.
    """

    interval_minutes: float = 60.0
    mean_time_between_days: float = 10.0
    checkpoint_seconds: float = 60.0
    workers: int = 64
    restart_seconds: float = 300.0
    seed: int = 7


def scenarios(parameters: Parameters) -> tuple[Scenario]:
    """The scenario of the first run.

    >>> scenarios(Parameters())[0].failures.checkpoint_every_seconds
    3600.0
    """
    return (_scenario(parameters),)


def explore(parameters: Parameters) -> Captioned:
    """Goodput over the interval: by formula, and of six runs at the chosen interval, the best interval and some others.

    Raises InputError where a run would hardly get from one checkpoint to the next.

    >>> [row["interval"] for row in explore(Parameters()).table]
    ['chosen', 'best', 'Young 1974', 'Daly 2006']
    """
    scenario = _scenario(parameters)
    failures, workers = scenario.failures, scenario.cluster.workers
    assert failures is not None, "as written above"
    mean_time = system_mean_time_between_seconds(failures.mean_time_between_seconds, workers)
    best = best_interval_seconds(failures.checkpoint_cost_seconds, mean_time)

    def gets_on(seconds: float) -> bool:
        share = goodput(seconds, failures.checkpoint_cost_seconds, failures.restart_cost_seconds, mean_time)
        return share >= LEAST_GOODPUT

    chosen = failures.checkpoint_every_seconds
    if not gets_on(chosen):
        rule = f"hardly lets a run get from one checkpoint to the next: a worker fails every {duration(mean_time)}"
        cure = f"save more often (every {duration(best)} is best), or make failures rarer"
        raise InputError.of("minutes between checkpoints", parameters.interval_minutes, rule, cure)
    beside = {max(1, round(factor * best / STEP_SECONDS)) * STEP_SECONDS for factor in BESIDE}
    intervals = [seconds for seconds in sorted({chosen, best, *beside}) if gets_on(seconds)]
    updates = _updates_seconds(scenario)
    return checkpoints(failures, workers, _goodputs(updates, failures, intervals, workers, parameters.seed))


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["interval_minutes"].value = 20.0
    >>> view.changed.value.count("useful work between checkpoints from 60 to 20")
    1
    """
    return Explorer(
        title=EXPLORERS["failures"].title,
        question=f"{STEPS * STEP_SECONDS / 3600.0:.0f} hours of work in steps of a minute. When a worker fails, all "
        f"workers go back to the last checkpoint. Each point is the mean of {SEEDS} simulated runs.",
        start=Parameters(),
        controls=[
            Choice("interval_minutes", "useful work between checkpoints", "min", INTERVALS),
            Choice("mean_time_between_days", "a worker fails every", "days", (1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 365.0)),
            Choice("checkpoint_seconds", "a checkpoint takes", "s", (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)),
        ],
        more=[
            Slider("workers", "workers", "", 1, 64),
            Choice("restart_seconds", "a restart takes", "s", (0.0, 30.0, 60.0, 300.0, 600.0, 1800.0)),
            Slider("seed", "seed of the first run", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(MINUTES, BY_FORMULA, OF_RUNS),
        real=lambda _: None,  # a real run would take days
    )


def _scenario(parameters: Parameters) -> Scenario:
    return Scenario.of(
        {
            "name": f"checkpoint-every-{parameters.interval_minutes:g}-min",
            "steps": STEPS,
            "seed": parameters.seed,
            "cluster": {"workers": parameters.workers, "bandwidth": "100 Gbit/s", "latency": "0 s"},
            "compute": {"mean": f"{STEP_SECONDS:g} s"},
            "workload": {"gradient": "0 B"},
            "policy": {"kind": "synchronous"},
            "communication": {"kind": "ring"},
            "failures": {
                "mean_time_between": f"{24.0 * parameters.mean_time_between_days:g} h",
                "checkpoint_every": f"{parameters.interval_minutes:g} min",
                "checkpoint_cost": f"{parameters.checkpoint_seconds:g} s",
                "restart_cost": f"{parameters.restart_seconds:g} s",
            },
        }
    )


def _updates_seconds(scenario: Scenario) -> Floats:
    """The times of the updates without failures. Workers are equal and messages free, so one worker is simulated."""
    alone = {name: table for name, table in scenario.table().items() if name != "failures"}
    return simulate(Scenario.of(alone).replacing({"cluster.workers": 1})).updates.time_seconds


def _goodputs(
    updates: Floats, failures: Failures, intervals: Sequence[float], workers: int, seed: int
) -> dict[float, list[float]]:
    """For each interval, the useful share of the time of each run: the result of `simulate`, without the spans.

    A run's failures are the same for all intervals, so they are drawn once.
    """
    found: dict[float, list[float]] = {seconds: [] for seconds in intervals}
    end = updates[-1:]
    of_interval = {seconds: goals(updates, seconds) for seconds in intervals}
    for run in range(SEEDS):
        drawn = (time for time, _ in failing(failures.mean_time_between_seconds, seed + run, workers))
        for seconds, coming in zip(intervals, tee(drawn, len(intervals)), strict=True):
            clock = played(of_interval[seconds], failures, coming, workers)
            found[seconds].append(float((end / clock.at(end))[0]))
    return found
