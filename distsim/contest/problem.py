"""The problem of a contest: a cluster and a workload, the target, the budget, and the entries to compare with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le
from pydantic import Field, ValidationError

from distsim import files, material, toml
from distsim.errors import InputError
from distsim.scenario import Scenario
from distsim.scenario_errors import explain
from distsim.validated_table import Count, CountOrZero, ValidatedTable

SCENARIO, RULES, REFERENCES = "scenario.toml", "contest.toml", "references"
LARGEST_MEGABYTES = 1
LARGEST_RATE = 100.0
Rate = Annotated[float, Gt(0.0), Le(LARGEST_RATE)]


class Rules(ValidatedTable):
    """`contest.toml`.

    target: the loss over all training samples at which the clock stops. most_hosts: the budget, which the workers and
    the servers on hosts of their own share. held_out: the seed from which the seeds of the races are drawn.
    within_pct, beyond_pct: a prediction whose error is at most `within_pct` has all its points; from `beyond_pct` on it
    has none. speed_points, prediction_points: the most points for each.
    """

    target: Annotated[float, Gt(0.0), Le(10.0)] = Field(examples=[0.3])
    most_hosts: Count = Field(examples=[9])
    held_out: CountOrZero = Field(examples=[2026])
    within_pct: Annotated[float, Ge(0.0), Le(1000.0)] = 5.0
    beyond_pct: Annotated[float, Gt(0.0), Le(1000.0)] = 25.0
    speed_points: Annotated[float, Gt(0.0), Le(1000.0)] = 12.0
    prediction_points: Annotated[float, Gt(0.0), Le(1000.0)] = 8.0


@dataclass(frozen=True)
class Problem:
    """scenario: its policy and communication are only a place to start from; an entry brings its own."""

    scenario: Scenario
    rules: Rules
    references: tuple[Path, ...]

    @classmethod
    def at(cls, folder: Path) -> Problem:
        """The problem in a folder with scenario.toml, contest.toml and references/NAME/entry.toml.

        Raises InputError where a file is missing or wrong.
        """
        scenario = Scenario.load(folder / SCENARIO)
        table = read_table(folder / RULES)
        try:
            rules = Rules.model_validate(table)
        except ValidationError as error:
            raise explain(error, Rules, RULES) from None
        if rules.beyond_pct <= rules.within_pct:
            rule = f"must be above within_pct = {rules.within_pct:g}"
            raise InputError.of("beyond_pct", rules.beyond_pct, rule, "write beyond_pct = 25")
        references = sorted((folder / REFERENCES).glob("*/"))
        if not references:
            rule = "has no entry to compare with"
            raise InputError.of("the contest", str(folder / REFERENCES), rule, "add references/ring/entry.toml")
        return cls(scenario, rules, tuple(references))

    def drawing_from(self, held_out: int) -> Problem:
        """The same problem with another number for the held-out seeds."""
        return replace(self, rules=self.rules.model_copy(update={"held_out": held_out}))

    def seeds(self, count: int) -> list[int]:
        """The held-out seeds: the same for the same `held_out`, and none is the seed of the published scenario.

        >>> found = Problem.at(contest_folder()).seeds(3)
        >>> len(set(found)), found == Problem.at(contest_folder()).seeds(3)
        (3, True)
        """
        drawn = np.random.default_rng(self.rules.held_out).permutation(2**16)[: count + 1].tolist()
        return [seed for seed in drawn if seed != self.scenario.seed][:count]


def contest_folder() -> Path:
    """The folder of lab 15, with the course's own problem and its references."""
    return material.home() / "labs" / material.CONTEST


def read_table(path: Path) -> dict[str, object]:
    """The TOML table in a file. Raises InputError where the file cannot be read, or is none, such as a named pipe."""
    if path.exists() and not path.is_file():
        raise InputError.of("file", str(path), "is no file", "write it as a plain file")
    try:
        text = files.read(path, LARGEST_MEGABYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError.of("file", str(path), f"cannot be read ({reason})", "write it, or correct its name") from None
    return toml.read(text, path.name)
