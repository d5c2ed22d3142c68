"""`distsim lab`: the graded exercises, for students and for authors."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TypeGuard

import click
from rich.table import Table
from rich.text import Text

from distsim.cli.before_start import warn_of_crowds
from distsim.cli.commands import Commands
from distsim.cli.output import NOT_APPLICABLE, PATH, console, json_option, labs_option, print_json, print_notes
from distsim.progress import bar

MOST_SHOWN = 4  # numbers in one cell of a table; a longer list is shown as its median


@click.group(cls=Commands)
def lab() -> None:
    """List the labs, start a lab, run your code for real. For instructors: stubs and the students' version.

    LAB is a number, a name or a path: 3, ring, 03_ring or labs/03_ring.
    """


@lab.command("list")
@labs_option
@json_option
def list_labs(labs: Path | None, as_json: bool) -> None:
    """List the labs with title, minutes, checks and points."""
    from distsim.grading.lab import all_labs
    from distsim.grading.result import shown

    found = all_labs(labs)
    if as_json:
        print_json(
            [
                {
                    "lab": one.key, "title": one.title, "summary": one.about.summary, "minutes": one.about.minutes,
                    "points": one.points, "checks": {check.name: check.points for check in one.checks.values()},
                }
                for one in found
            ]
        )  # fmt: skip
        return
    table = Table()
    for column in ("lab", "title", "minutes", "checks", "points"):
        table.add_column(column, justify="left" if column in ("lab", "title") else "right", overflow="fold")
    for one in found:
        numbers = [str(one.about.minutes), str(len(one.checks)), shown(one.points)]
        table.add_row(Text(one.key), Text(one.title), *numbers)
    console().print(table)


@lab.command()
@click.argument("name", metavar="LAB")
@click.argument("folder", metavar="DIR", type=PATH)
@labs_option
def start(name: str, folder: Path, labs: Path | None) -> None:
    """Copy a lab, or the contest, into DIR, where you work on it. Nothing is overwritten."""
    from distsim.grading import release
    from distsim.grading.lab import NOTEBOOK, TASKS, find, is_contest, untouched

    if is_contest(name):
        click.echo(f"{release.start_contest(folder, labs) / NOTEBOOK} has the problem, and says how to race")
        return
    place = release.start(untouched(find(name, labs)), folder)
    click.echo(f"{place / NOTEBOOK} asks, {place / TASKS} is yours to write")


@lab.command()
@click.argument("name", metavar="LAB")
@click.option("--folder", type=PATH, help="Where your tasks.py is (default: in the lab's folder).")
@click.option("--ranks", type=click.IntRange(1, 64), help="How many processes to start (default: as the lab says).")
@click.option(
    "--emulate", is_flag=True, help="Impose the links of the lab's scenario instead of using this machine's own."
)
@click.option("--deadline", type=click.FloatRange(min=1.0), metavar="SECONDS", help="End the run after this long.")
@labs_option
@json_option
def run(
    name: str,
    folder: Path | None,
    ranks: int | None,
    emulate: bool,
    deadline: float | None,
    labs: Path | None,
    as_json: bool,
) -> None:
    """Run your code for real: processes under torchrun that use gloo, or NCCL where each process has a GPU.

    Prints what every rank returned, and which functions you have still to write; calls that need them are left out.
    Nothing is confined and nothing is judged: `distsim grade` does both. Ends with 3 if a rank failed, with the rank
    and the place, or if there is nothing to run yet.
    """
    from distsim.grading.lab import TASKS, find
    from distsim.grading.real import DEADLINE_SECONDS, still_unwritten
    from distsim.grading.real import run as run_for_real

    if (found := find(name, labs)) and folder is None and (Path.cwd() / TASKS).is_file():
        folder = Path.cwd()
    if not as_json:
        click.echo(f"runs {(folder or found.folder) / TASKS}", err=True)
    warn_of_crowds(found.about.ranks if ranks is None else ranks)
    with bar(f"lab run {found.key}", shown=not as_json) as report:
        results = run_for_real(
            found,
            ranks=ranks,
            folder=folder,
            emulate=emulate,
            deadline_seconds=deadline or DEADLINE_SECONDS,
            progress=report,
        )
    if as_json:
        print_json(results)
    else:
        console().print(_by_rank(found.key, results))
        print_notes([*_medians(results), *map(str, still_unwritten(found, folder))])


def _by_rank(title: str, results: list[object]) -> Table:
    """A row for each rank, a column for each key that any rank returned."""
    rows = [result if isinstance(result, dict) else {"returned": result} for result in results]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    table.add_column("rank", justify="right")
    for key in keys:
        table.add_column(Text(_head(key)), justify="right")
    for rank, row in enumerate(rows):
        table.add_row(str(rank), *(Text(_shown(row.get(key))) for key in keys))
    return table


def _head(key: object) -> str:
    """The key with spaces, at which a narrow terminal can break the line."""
    return str(key).replace("_", " ")


def _medians(results: list[object]) -> list[str]:
    """One line that names the columns with medians; no line where there are none."""
    rows = [result for result in results if isinstance(result, dict)]
    counts = {key: len(value) for row in rows for key, value in row.items() if _is_long(value)}
    told = [f"{_head(key)} (of {count})" for key, count in counts.items()]
    return [f"medians, --json tells all numbers: {', '.join(told)}"] if told else []


def _is_long(value: object) -> TypeGuard[list[float]]:
    return isinstance(value, list) and len(value) > MOST_SHOWN and all(isinstance(one, (int, float)) for one in value)


def _shown(value: object) -> str:
    """One cell."""
    if _is_long(value):
        return f"{median(value):.6g}"
    return f"{value:.6g}" if isinstance(value, float) else NOT_APPLICABLE if value is None else str(value)


@lab.command()
@click.argument("name", metavar="LAB")
@labs_option
def stub(name: str, labs: Path | None) -> None:
    """For authors: write a lab's tasks.py from its solution.py.

    The lines between the comments "# write" and "# end" are left out: students write them.
    """
    from distsim.grading.lab import find
    from distsim.grading.stub import write_stub

    click.echo(f"wrote {write_stub(find(name, labs))}")


@lab.command()
@click.argument("out", metavar="OUT", type=PATH)
@click.option("--nbgrader", is_flag=True, help="Write a course folder of nbgrader, with the labs as its assignments.")
@labs_option
def release(out: Path, nbgrader: bool, labs: Path | None) -> None:
    """For instructors: write the students' version of all labs and of the contest into OUT, a new or empty folder.

    This version has no solutions, no wrong solutions and no outputs. A line of a solution in a released file is an
    error.
    """
    from distsim.grading.lab import all_labs
    from distsim.grading.release import release as write
    from distsim.grading.release import release_for_nbgrader

    written = (release_for_nbgrader if nbgrader else write)(all_labs(labs), out)
    click.echo(f"wrote {len(written)} files into {out}")


@lab.command()
@click.argument("name", metavar="LAB")
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="How many mutants to try at once."
)
@click.option(
    "--mutant",
    "keys",
    metavar="KEY",
    multiple=True,
    help="Try this mutant alone, and print its change and what the check said. May be given several times.",
)
@click.option("--sample", type=click.IntRange(min=1), help="Try so many mutants, of many kinds (default: all).")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Draw the inputs of the checks from this number (default: from the hash of the lab).",
)
@labs_option
@json_option
def power(
    name: str,
    jobs: int,
    keys: tuple[str, ...],
    sample: int | None,
    seed: int | None,
    labs: Path | None,
    as_json: bool,
) -> None:
    """For authors: try a lab's checks on generated wrong solutions, and print those that no check catches.

    Mutants are made from solution.py and other.py by one change each: general ones, such as an index that is off by
    one, and those of the trade, such as a wait that is dropped. A survivor calls for a better check, or for an
    entry in the lab's equivalent.toml, with the reason why the change changes nothing. Such an entry is verified:
    results, bytes, messages and virtual times must equal the solution's, but for what the entry lists as left to
    students. A misfit is a mutant that was caught only by checks that do not exercise the changed function, or only
    since its results could not be judged.

    Ends with 1 if a mutant survives, or if one that is named equivalent differs from the solution.
    """
    from distsim.cli.lab_power import try_lab
    from distsim.grading.lab import find

    try_lab(find(name, labs), jobs, keys, sample, seed, as_json)
