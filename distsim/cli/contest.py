"""`distsim contest`: the policies, rules and schedules of a class, raced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from distsim.cli.output import NOT_APPLICABLE, PATH, console, json_option, print_json, print_notes, warn, wide_table
from distsim.errors import InputError
from distsim.files import check_writable, printable
from distsim.progress import Phase, bar
from distsim.units import show
from distsim.validated_table import LARGEST_COUNT

if TYPE_CHECKING:
    from distsim.contest.race import Race, Result

PICTURES = (".png", ".svg", ".html")
DRAWN = 8  # entries in the picture, beside the references; more lines could not be told apart
MOST_SEEDS = 1000


@click.command("contest")
@click.argument("submissions", type=PATH)
@click.option("--seeds", type=click.IntRange(1, MOST_SEEDS), default=10, show_default=True, metavar="N",
              help="Held-out seeds on which each entry races.")  # fmt: skip
@click.option("--held-out", type=click.IntRange(0, LARGEST_COUNT), metavar="N",
              help="Draw the seeds from a number of yours (default: the published one of the problem).")  # fmt: skip
@click.option("--problem", type=PATH, help="A folder with another problem (default: labs/15_contest).")
@click.option("--out", type=PATH, help="Draw the race on the first seed: .png, .svg or .html.")
@click.option("--trust", is_flag=True, help="Run rules without confinement; for machines that cannot confine.")
@json_option
def contest(
    submissions: Path, seeds: int, held_out: int | None, problem: Path | None, out: Path | None, trust: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Race the entries of a class to a target loss, beside the reference policies.

    SUBMISSIONS holds a folder for each entry, with entry.toml and its rule or schedule. Each entry has points for its
    mean time on held-out seeds, and for the prediction of this time. An entry that breaks the rules of the contest has
    none, and the table says why. The same entries give the same table, unless a rule draws random numbers of its own
    or needs nearly the 60 s that it has for a run. For grades, draw the seeds from a number that nobody knows.

    \b
        distsim contest submissions
        distsim contest submissions --seeds 30 --held-out 90125 --out race.html
        distsim contest my_folder --seeds 3      # with one entry in it, to try it
    """
    from distsim.contest.problem import Problem, contest_folder
    from distsim.contest.race import ALL_AT, entries, race

    if out is not None:
        if out.suffix not in PICTURES:
            raise InputError.of("--out", str(out), f"must end in {' or '.join(PICTURES)}", "rename it, as in race.html")
        check_writable(out)
    posed = Problem.at(problem or contest_folder())
    if held_out is not None:
        posed = posed.drawing_from(held_out)
    folders = entries(submissions)
    if not trust and any(path.suffix == ".py" for folder in folders for path in folder.iterdir()):
        _check_confined()
    done, runs = 0, seeds * (len(folders) + len(posed.references))
    with bar("contest", shown=not as_json) as report:

        def begun(name: str) -> None:
            nonlocal done
            done += 1
            report(Phase(f"{name}: run", done, runs))

        found = race(posed, folders, posed.seeds(seeds), trusted=trust, report=begun)
    if out is not None:
        _draw(found, out)
    if as_json:
        print_json({
            "target_loss": found.target, "seeds": list(found.seeds),
            "entries": [one.as_dict() for one in found.entries],
            "references": [one.as_dict() for one in found.references],
        })  # fmt: skip
        return
    rules = posed.rules
    console().print(_table(found))
    print_notes([
        f"speed: up to {rules.speed_points:g} points, none for the time of {found.references[-1].name} or more, "
        f"all for {ALL_AT:g} of that of {found.references[0].name} or less, on a scale of ratios",
        f"prediction: up to {rules.prediction_points:g} points, all for an error of at most {rules.within_pct:g} %, "
        f"none from {rules.beyond_pct:g} % on",
        *(f"{one.name} has no points: {_on_one_line(one.broken)}" for one in found.entries if one.broken),
        *(["the seeds are those of the published number; for grades, write --held-out"] if held_out is None else []),
        *(["the race on the first seed: " + str(out)] if out is not None else []),
    ])  # fmt: skip


def _on_one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _check_confined() -> None:
    from distsim.testbed.sandbox import reason_against

    if (reason := reason_against()) is not None:
        rule = f"hold rules, which would run without confinement here ({reason})"
        raise InputError.of("SUBMISSIONS", "*.py", rule, "race on another machine, or write --trust if you trust all")


def _table(found: Race) -> Table:
    seeds = f"{len(found.seeds)} seed" + ("s" if len(found.seeds) > 1 else "")
    rows = wide_table(
        f"time to a loss of {found.target:g}, {seeds}", "entry", "kind", "time", "95 % interval", "predicted", "error",
        "speed", "prediction", "points",
    )  # fmt: skip
    for one in found.entries:
        points = [f"{value:.1f}" for value in (one.speed, one.accuracy, one.points)]
        rows.add_row(Text(one.name), one.kind, *_times(one), *points)
    rows.add_section()
    for one in found.references:
        rows.add_row(one.name, "reference", *_times(one), *[NOT_APPLICABLE] * 3)
    return rows


def _times(one: Result) -> list[str]:
    """The cells of the time, its interval, the prediction and its error."""
    predicted = NOT_APPLICABLE if one.prediction_seconds is None else show(one.prediction_seconds, "second")
    if one.broken:
        return ["no race", NOT_APPLICABLE, predicted, NOT_APPLICABLE]
    if not one.reaches:
        return ["not reached", NOT_APPLICABLE, predicted, NOT_APPLICABLE]
    around = one.interval
    between = NOT_APPLICABLE if around is None else f"{show(around.low, 'second')} to {show(around.high, 'second')}"
    error = NOT_APPLICABLE if one.error_pct is None else f"{one.error_pct:+.1f} %"
    return [show(one.mean_seconds, "second"), between, predicted, error]


def _draw(found: Race, out: Path) -> None:
    from distsim.figures.loss import loss

    shown: Sequence[Result] = [*found.entries[:DRAWN], *found.references]
    curves = {one.name: one.curve for one in shown if one.curve is not None and one.reaches}
    if not curves:
        warn(["there is nothing to draw: no entry reaches the target"])
        return
    loss(curves, against=["seconds"], target=found.target).save(out)
