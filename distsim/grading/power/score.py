"""Tries the mutants of a lab on its checks, and tells which check caught each.

A mutant is judged by the checks directly, without the notebook. Checks that exercise the changed function come first,
and the first check that takes points ends the trial.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from distsim.errors import RunError
from distsim.grading.lab import TASKS, Lab
from distsim.grading.power.equivalent import Equivalent, equivalents
from distsim.grading.power.evidence import TRACE, Recorder, called, difference, fitting, seen
from distsim.grading.power.mutant import Mutant, all_mutants, known, selected, spread
from distsim.grading.power.source import sources
from distsim.progress import Phase, Report

KILLED, MISFIT, SURVIVOR = "killed", "misfit", "survivor"
EQUIVALENT, ALLOWED, DIFFERS = "equivalent", "allowed", "differs"  # of mutants that equivalent.toml names
UNJUDGED = "could not be judged"
SEEDS = (0, 1, 2)  # with which a mutant that is named equivalent is compared with the solution
TRIES = 2  # ranks may fail to start on a busy machine
Calls = dict[str, set[str]]  # for each check, the functions that its runs call


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant. check: the check that caught it; said: what that check saw, or what differs."""

    mutant: Mutant
    kind: str
    check: str = ""
    said: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The outcome as a table for JSON."""
        return {
            "key": self.mutant.key, "line": self.mutant.line, "outcome": self.kind, "check": self.check,
            "said": self.said,
        }  # fmt: skip


@dataclass(frozen=True)
class Score:
    """The outcomes of one lab, in the order of its mutants."""

    lab: Lab
    outcomes: Sequence[Outcome]

    def count(self, kind: str) -> int:
        """How many mutants had this outcome."""
        return sum(outcome.kind == kind for outcome in self.outcomes)

    @property
    def share(self) -> float:
        """The share of the mutants, without equivalent and allowed ones, that fitting checks caught."""
        wrong = len(self.outcomes) - self.count(EQUIVALENT) - self.count(ALLOWED)
        return self.count(KILLED) / wrong if wrong else 1.0

    @property
    def holds(self) -> bool:
        """Whether every mutant is caught, equivalent or allowed."""
        return not self.count(SURVIVOR) and not self.count(DIFFERS)


@dataclass(frozen=True)
class Trial:
    """What to try of a lab. named: the mutants that it names as right, by key."""

    lab: Lab
    mutants: Sequence[Mutant]
    named: Mapping[str, Equivalent]

    @classmethod
    def of(cls, lab: Lab, keys: Sequence[str], sample: int | None) -> Trial:
        """The mutants with these keys; without keys, those that `selected` gives, and those that the lab names.

        sample: how many of them, spread over functions and mutators; None for all.

        Raises InputError if equivalent.toml or a key is wrong.
        """
        made = all_mutants(lab)
        named = equivalents(lab, made)
        keys = keys or [*(mutant.key for mutant in selected(made.values())), *named]
        mutants = [known(key, made, "--mutant") for key in dict.fromkeys(keys)]
        return cls(lab, mutants if sample is None else spread(mutants)[:sample], named)


def power(trial: Trial, pool: Executor, place: Path, *, seed: int | None, report: Report) -> Score:
    """Tries mutants in the processes of `pool`.

    place: a folder for the processes, which the caller removes. seed: of the checks' inputs, default `Lab.seed`.
    report: called with the `Phase`, which counts mutants.

    Raises RunError if a right solution loses points or no ranks start.
    """
    lab, mutants, named = trial.lab, trial.mutants, trial.named
    seed = lab.seed() if seed is None else seed
    report(Phase("the solutions", 0, len(mutants)))
    folder = str(lab.folder)
    traces = {
        source.name: pool.submit(_calls, folder, lab.key, str(place), source.name, source.text, seed)
        for source in sources(lab)
        if any(mutant.file == source.name for mutant in mutants)
    }
    calls = {name: future.result() for name, future in traces.items()}
    callers = {source.name: source.callers() for source in sources(lab)}
    texts = {source.name: source.text for source in sources(lab)}
    waiting = {}
    for mutant in mutants:
        fits = fitting(calls[mutant.file], callers[mutant.file], mutant.function)
        if mutant.key in named:
            right, as_named = texts[mutant.file], named[mutant.key]
            future = pool.submit(_verified, folder, lab.key, str(place), mutant, right, fits, as_named)
        else:
            future = pool.submit(_tried, folder, lab.key, str(place), mutant, fits, seed)
        waiting[future] = mutant
    found: dict[str, Outcome] = {}
    for future in as_completed(waiting):
        found[waiting[future].key] = future.result()
        report(Phase.counted("mutant", len(found), len(mutants)))
    return Score(lab, [found[mutant.key] for mutant in mutants])


def _calls(folder: str, key: str, place: str, name: str, text: str, seed: int) -> Calls:
    """What each check's runs call of a right solution, which must have all points."""
    bed, lab = _bed(folder, key, place)
    _lay(bed, text + TRACE)
    bed.seed, bed.right = seed, True
    found: Calls = {}
    for check in lab.checks.values():
        result = _judged(bed, check.name, lab)
        if not result.full:
            raise RunError(f"{key}: its own {name}.py loses points, so no mutant can be judged.\n{result.text()}")
        found[check.name] = called(bed.runs)
    return found


def _tried(folder: str, key: str, place: str, mutant: Mutant, fits: Sequence[str], seed: int) -> Outcome:
    """Judges one mutant until a check takes points, with the checks that fit first."""
    bed, lab = _bed(folder, key, place)
    _lay(bed, mutant.text)
    bed.seed, bed.right = seed, False
    for name in [*fits, *(name for name in lab.checks if name not in fits)]:
        result = _judged(bed, name, lab)
        if not result.full:
            fit = name in fits and UNJUDGED not in result.observed
            return Outcome(mutant, KILLED if fit else MISFIT, name, result.observed)
    return Outcome(mutant, SURVIVOR)


def _verified(
    folder: str, key: str, place: str, mutant: Mutant, right: str, fits: Sequence[str], named: Equivalent
) -> Outcome:
    """Compares a mutant that is named right with the right solution, in all runs of the checks that exercise it."""
    bed, lab = _bed(folder, key, place)
    for seed in SEEDS:
        for name in fits:
            found = _evidence(bed, lab, mutant.text, name, seed)
            if reason := difference(found, _evidence_of_right(folder, key, place, right, name, seed), named.differs):
                return Outcome(mutant, DIFFERS, name, f"named equivalent, but {reason} differ with the seed {seed}")
    return Outcome(mutant, ALLOWED if named.differs else EQUIVALENT)


@cache
def _evidence_of_right(folder: str, key: str, place: str, right: str, name: str, seed: int) -> list[tuple[str, object]]:
    bed, lab = _bed(folder, key, place)
    return _evidence(bed, lab, right, name, seed)


def _evidence(bed: Recorder, lab: Lab, text: str, name: str, seed: int) -> list[tuple[str, object]]:
    _lay(bed, text)
    bed.seed, bed.right = seed, True  # also of a mutant that is said to be right
    result = _judged(bed, name, lab)
    return [*seen(bed.runs), ("points", result.points)]


def _judged(bed: Recorder, name: str, lab: Lab) -> Any:
    for turn in range(TRIES):
        try:
            return bed.judge(lab.checks[name])
        except RunError:
            bed.close()
            if turn + 1 == TRIES:
                raise
    return None


@cache
def _bed(folder: str, key: str, place: str) -> tuple[Recorder, Lab]:
    """This process's testbed for a lab. Its fork server serves all mutants, of which only tasks.py differs."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)  # so that a run in progress is ended with its ranks
    lab = Lab.at(Path(folder), key)
    own = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=place))
    for path in lab.pristine:
        (own / path.name).write_bytes(path.read_bytes())
    return Recorder(own, trusted=True), lab


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _lay(bed: Recorder, text: str) -> None:
    (bed.folder / TASKS).write_text(text, "utf-8")
