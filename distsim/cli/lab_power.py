"""What `distsim lab power` prints."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from distsim.cli.output import console, print_json
from distsim.cli.process_pool import process_pool
from distsim.extras import need
from distsim.progress import bar

if TYPE_CHECKING:
    from distsim.grading.lab import Lab
    from distsim.grading.power.score import Outcome, Score

DOES_NOT_HOLD = 1  # the exit code


def try_lab(lab: Lab, jobs: int, keys: Sequence[str], sample: int | None, seed: int | None, as_json: bool) -> None:
    """Tries the mutants of a lab and prints the score, and each mutant that is named in `keys` or needs a look."""
    need("torch", "lab power")
    from distsim.grading.power.score import Trial, power
    from distsim.runtime.launch.termination import termination_raises

    trial = Trial.of(lab, keys, sample)
    with (
        termination_raises(),
        tempfile.TemporaryDirectory(prefix="distsim-power-") as place,
        bar(f"lab power {lab.key}", shown=not as_json) as report,
        process_pool(jobs) as pool,
    ):
        score = power(trial, pool, Path(place), seed=seed, report=report)
    if as_json:
        print_json(
            {
                "lab": lab.key, "mutants": len(score.outcomes), "killed_by_fitting_checks": score.share,
                "outcomes": [outcome.as_dict() for outcome in score.outcomes],
            }
        )  # fmt: skip
    else:
        _print(score, keys)
    if not score.holds:
        sys.exit(DOES_NOT_HOLD)


def _print(score: Score, keys: Sequence[str]) -> None:
    from distsim.grading.power.score import ALLOWED, DIFFERS, EQUIVALENT, KILLED, MISFIT, SURVIVOR
    from distsim.grading.power.source import sources

    table = Table()
    for column in (
        "lab",
        "mutants",
        "killed",
        "misfit",
        "equivalent",
        "allowed",
        "survivors",
        "killed by fitting checks",
    ):
        table.add_column(column, justify="left" if column == "lab" else "right")
    counts = [score.count(kind) for kind in (KILLED, MISFIT, EQUIVALENT, ALLOWED, SURVIVOR)]
    table.add_row(Text(score.lab.key), str(len(score.outcomes)), *map(str, counts), f"{100 * score.share:.1f} %")
    console().print(table)
    by_name = {source.name: source for source in sources(score.lab)}
    for kind in (KILLED, EQUIVALENT, ALLOWED, MISFIT, DIFFERS, SURVIVOR):
        for outcome in score.outcomes:
            if outcome.kind == kind and (kind not in (KILLED, EQUIVALENT, ALLOWED) or outcome.mutant.key in keys):
                click.echo(_told(outcome))
                click.echo(outcome.mutant.diff(by_name[outcome.mutant.file]))


def _told(outcome: Outcome) -> str:
    """One line on a mutant: what the check said that caught it, or which line was changed."""
    caught = f", {outcome.check}: {outcome.said}" if outcome.check else f", line = {outcome.mutant.line!r}"
    return f"\n{outcome.kind}: {outcome.mutant.key}{caught}"
