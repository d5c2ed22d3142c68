"""Races: each entry trains on each held-out seed until the target loss; then points.

The simulator plays the entry's run. Real gradients of the digits are then computed in the order of that run, so a
stale gradient and a dropped one count as what they are. The clock stops at the first evaluated loss at or below the
target.

An entry breaks the rules if its schedule does not give every worker the whole sum, if its rule decides something
impossible, or if it makes an update without a gradient. Then it has no points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.contest.entry import Entry
from distsim.contest.problem import Problem, Rules
from distsim.errors import DistsimError, InputError
from distsim.files import printable
from distsim.learning.curve import Curve
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.simulation import simulate
from distsim.statistics import Interval, interval
from distsim.trace import Trace

if TYPE_CHECKING:
    from distsim.contest.rule_process import ConfinedRule

ALL_AT = 0.8  # of the fastest reference's time: an entry that is so fast has all points for speed
LOOKS = 400  # at so many updates of a run, evenly spaced, the loss is evaluated


@dataclass(frozen=True)
class Result:
    """What became of an entry.

    seconds: to the target, by seed; infinite where a run never reaches it. broken: why the entry has no points. curve:
    of the first seed. speed, accuracy: the points.
    """

    name: str
    kind: str
    seconds: tuple[float, ...] = ()
    prediction_seconds: float | None = None
    broken: str | None = None
    curve: Curve | None = field(default=None, repr=False)
    speed: float = 0.0
    accuracy: float = 0.0

    @property
    def mean_seconds(self) -> float:
        """The mean time to the target; infinite where one run never reaches it."""
        return fmean(self.seconds) if self.seconds else math.inf

    @property
    def reaches(self) -> bool:
        """Whether it reached the target with every seed."""
        return math.isfinite(self.mean_seconds)

    @property
    def interval(self) -> Interval | None:
        """The mean time with its 95 % interval; None where there is none."""
        return interval(self.seconds) if len(self.seconds) > 1 and self.reaches else None

    @property
    def error_pct(self) -> float | None:
        """How far the prediction lies above the mean time, in percent; None without a prediction or a time."""
        if self.prediction_seconds is None or not self.reaches:
            return None
        return 100.0 * (self.prediction_seconds / self.mean_seconds - 1.0)

    @property
    def points(self) -> float:
        """All points."""
        return self.speed + self.accuracy

    def as_dict(self) -> dict[str, Any]:
        """The result as a table for JSON."""
        return {
            "name": self.name, "kind": self.kind, "points": self.points, "speed_points": self.speed,
            "prediction_points": self.accuracy, "mean_seconds": self.mean_seconds, "seconds": list(self.seconds),
            "prediction_seconds": self.prediction_seconds, "prediction_error_pct": self.error_pct,
            "broken": self.broken,
        }  # fmt: skip


@dataclass(frozen=True)
class Race:
    """The entries, most points first, then the faster, then by name; the references, the fastest first."""

    entries: Sequence[Result]
    references: Sequence[Result]
    target: float
    seeds: Sequence[int]


def race(
    problem: Problem, folders: Sequence[Path], seeds: Sequence[int], *, trusted: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Race:  # fmt: skip
    """Races the entries in `folders` and the references on each seed.

    trusted: rules run without confinement. report: called with the name of an entry before each of its runs.

    Raises InputError where a reference cannot race.
    """
    references = [
        _raced(_entered(path, problem, predicts=False), seeds, problem, trusted, report) for path in problem.references
    ]
    for one in references:
        if not one.reaches:
            if one.broken:
                raise InputError(f"reference {one.name}: {one.broken}")
            rule = "does not reach the target with every seed"
            raise InputError.of("reference", one.name, rule, "correct its rate, or the target")
        if 0.0 in one.seconds:
            raise InputError.of("target", problem.rules.target, "is reached before any training", "write a lower one")
    raced = [_raced(_entered(path, problem), seeds, problem, trusted, report) for path in folders]
    fastest, slowest = (pick(one.mean_seconds for one in references) for pick in (min, max))
    judged = [_with_points(one, problem.rules, fastest, slowest) for one in raced]
    return Race(
        sorted(judged, key=lambda one: (bool(one.broken), -round(one.points, 6), one.mean_seconds, one.name)),
        sorted(references, key=lambda one: (one.mean_seconds, one.name)), problem.rules.target, list(seeds),
    )  # fmt: skip


def _entered(folder: Path, problem: Problem, *, predicts: bool = True) -> Entry | Result:
    try:
        return Entry.at(folder, problem, predicts=predicts)
    except InputError as error:
        return Result(printable(folder.name), "–", broken=str(error))


def _raced(
    entry: Entry | Result, seeds: Sequence[int], problem: Problem, trusted: bool, report: Callable[[str], None]
) -> Result:
    if isinstance(entry, Result):
        for _ in seeds:
            report(entry.name)
        return entry
    curves: list[Curve] = []
    for seed in seeds:
        report(entry.name)
        try:
            curves.append(run(entry, seed, problem, trusted=trusted))
        except DistsimError as error:
            return Result(entry.name, entry.kind, (), entry.prediction_seconds, str(error))
    times = tuple(curve.seconds_to(problem.rules.target) for curve in curves)
    return Result(entry.name, entry.kind, times, entry.prediction_seconds, curve=curves[0])


def run(entry: Entry, seed: int, problem: Problem, *, trusted: bool = False) -> Curve:
    """One run: loss against the clock, to the target. Raises InputError where the entry breaks a rule."""
    scenario = entry.scenario.replacing({"seed": seed})
    with _rule(entry, trusted=trusted) as rule:
        trace = simulate(scenario, rule=rule, schedule=entry.schedule)
    check_updates(trace)
    return replay(trace, TorchModel.of("mlp"), Sgd(entry.rate), points=LOOKS, target=problem.rules.target)


@contextmanager
def _rule(entry: Entry, *, trusted: bool) -> Iterator[ConfinedRule | None]:
    workers = entry.scenario.cluster.workers
    if entry.rule is None:
        yield None
        return
    from distsim.contest.rule_process import confined_rule  # needs Unix, and only a rule needs it

    updates = entry.scenario.policy.updates(entry.scenario.steps, workers)
    asked = confined_rule(entry.folder, entry.rule, workers, updates, trusted=trusted)
    with asked as rule:
        yield rule


def check_updates(trace: Trace) -> None:
    """Raises InputError for an update that no gradient went into: such an update would count work that nobody did."""
    filled = np.unique(trace.contributions.version[trace.contributions.applied])
    if len(empty := np.setdiff1d(trace.updates.version, filled)):
        raise InputError.of(
            "update", int(empty[0]), "has no gradient in it", "make an update only of gradients that have arrived"
        )


def speed_points(seconds: float, fastest: float, slowest: float, most: float) -> float:
    """None at the slowest reference's time, all at `ALL_AT` of the fastest one's; even between, on a scale of ratios.

    >>> [round(speed_points(seconds, fastest=12.5, slowest=40.0, most=12.0), 2) for seconds in (50.0, 40.0, 20.0, 10.0)]
    [0.0, 0.0, 6.0, 12.0]
    """
    return most * min(max(math.log(slowest / seconds) / math.log(slowest / (ALL_AT * fastest)), 0.0), 1.0)


def prediction_points(error_pct: float | None, rules: Rules) -> float:
    """All up to `within_pct`, none from `beyond_pct` on, even in between."""
    if error_pct is None:
        return 0.0
    left = (rules.beyond_pct - abs(error_pct)) / (rules.beyond_pct - rules.within_pct)
    return rules.prediction_points * min(max(left, 0.0), 1.0)


def _with_points(one: Result, rules: Rules, fastest: float, slowest: float) -> Result:
    if not one.reaches:
        return one
    speed = speed_points(one.mean_seconds, fastest, slowest, rules.speed_points)
    return replace(one, speed=speed, accuracy=prediction_points(one.error_pct, rules))


def entries(folder: Path) -> list[Path]:
    """The entries of a class: each folder in `folder`, by name. Raises InputError where there is none."""
    if not folder.is_dir():
        raise InputError.of("SUBMISSIONS", str(folder), "is no folder", "name a folder with a folder for each entry")
    found: Iterable[Path] = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not (listed := sorted(found, key=lambda path: path.name)):
        cure = "make a folder for each entry, with entry.toml in it"
        raise InputError.of("SUBMISSIONS", str(folder), "holds no entry", cure)
    return listed
