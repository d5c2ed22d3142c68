"""`distsim grade`: one submission, or a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from distsim.cli.output import PATH, console, json_option, labs_option, print_json, print_notes, warn
from distsim.errors import InputError, RunError
from distsim.extras import need
from distsim.files import write_text
from distsim.progress import bar

if TYPE_CHECKING:
    from distsim.grading.class_grading import Graded
    from distsim.grading.grade import Grade
    from distsim.grading.lab import Lab


@click.command()
@click.argument("name", metavar="LAB")
@click.option("--submission", "path", type=PATH, help="A folder with tasks.py, or that file.")
@click.option(
    "--all",
    "folder",
    type=PATH,
    help="A folder or .zip of a class: a folder for each student, or an export of Moodle or Canvas.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="With --all: how many to grade at once."
)
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="The folder for feedback, gradebook.csv and what was graded (default with --all: grades_LAB).",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Draw the inputs of the checks from this number (default: from the hash of the lab).",
)
@click.option("--trust", is_flag=True, help="Run submissions without confinement where this machine cannot confine.")
@labs_option
@json_option
def grade(
    name: str,
    path: Path | None,
    folder: Path | None,
    jobs: int,
    out: Path | None,
    seed: int | None,
    trust: bool,
    labs: Path | None,
    as_json: bool,
) -> None:
    """Grade submissions of a LAB: run the lab's own notebook and its checks with a student's tasks.py.

    LAB is a number, a name or a path: 3, ring, 03_ring or labs/03_ring. A student's code runs only in confined ranks
    and never in the process that decides the points. A notebook that the student edited changes nothing. Nor does a
    learner's copy of the course: without --labs, its labs are graded by the package's own notebooks and checks.

    With --all every student gets a page of feedback, and a row in gradebook.csv. Called again, also after an
    interrupt, the command grades only what is missing, and what changed since in a submission or in the lab. The row's
    key is the name of the student's folder, Moodle's "Participant NUMBER", or Canvas's ID.

    The same submission, lab and seed always give the same inputs. Everyone who has the lab knows the default seed. With
    a seed of your own, which you keep to yourself until the labs are handed in, nobody can foresee the inputs.

    Exit codes: 0 whatever the points; 2 on bad input, or where this machine cannot confine the ranks; 3 if a
    submission could not be graded for no fault of its own.
    """
    from distsim.grading.lab import find, untouched

    if (path is None) == (folder is None):
        raise InputError("grade takes either --submission or --all. Cure: write one of them, such as --submission ada/")
    need("torch", "grade")
    lab = untouched(find(name)) if labs is None else find(name, labs)
    if path is not None:
        _one(lab, path, out, seed, as_json)
    else:
        assert folder is not None
        _all(lab, folder, out or Path(f"grades_{lab.key}"), jobs, seed, trust, as_json)


def _one(lab: Lab, path: Path, out: Path | None, seed: int | None, as_json: bool) -> None:
    from distsim.grading.class_grading import feedback_file, make
    from distsim.grading.feedback import feedback
    from distsim.grading.grade import grade as graded
    from distsim.grading.result import NOT_IMPORTED, not_run, told_once
    from distsim.grading.submission import submission
    from distsim.grading.trust import warning
    from distsim.runtime.launch.termination import termination_raises

    handed_in = submission(path, lab)
    if reason := warning():
        warn([reason])
    if out is not None:
        make(out)
    with termination_raises(), bar(f"grade {lab.key}", shown=not as_json) as report:
        found = graded(handed_in, lab, seed=seed, trust=reason is not None, progress=report)
    if out is not None:
        write_text(feedback_file(out, found.student), feedback(found))
    if as_json:
        print_json(found.as_dict())
        return
    console().print(_table(found))
    for result in told_once(found.results):
        fault = result.import_fault
        checks = ", ".join(not_run(fault, found.results)) or "every check"
        click.echo(f"{checks}: {NOT_IMPORTED}{fault}" if fault else result.text())
    print_notes([*found.remarks, _what_was_graded(found)])


def _table(found: Grade) -> Table:
    from distsim.grading.result import shown

    title = found.lab if found.student == found.lab else f"{found.lab}: {found.student}"
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    table.add_column("check")
    table.add_column("points", justify="right")
    table.add_column("of", justify="right")
    for result in found.results:
        table.add_row(Text(result.check), shown(result.points), shown(result.maximum))
    table.add_section()
    table.add_row("total", shown(found.points), shown(found.maximum))
    return table


def _what_was_graded(found: Grade) -> str:
    return f"graded: {found.path}, sha256 {found.sha256 or 'of nothing'}, inputs drawn from the seed {found.seed}"


def _all(lab: Lab, folder: Path, out: Path, jobs: int, seed: int | None, trust: bool, as_json: bool) -> None:
    from distsim.grading.class_folder import submissions
    from distsim.grading.class_grading import FEEDBACK, GRADEBOOK, check_apart, grade_all
    from distsim.grading.trust import check_unseen
    from distsim.runtime.launch.termination import termination_raises

    handed_in = submissions(folder, lab)
    check_unseen("--all", folder)
    check_unseen("--out", out)
    check_apart(out, folder)
    if handed_in.unread:
        warn([f"not read, since nobody's submission is called so: {', '.join(handed_in.unread)}"])
    with termination_raises(), bar(f"grade {lab.key}", shown=not as_json) as report:
        found = grade_all(handed_in.submissions, lab, out, jobs=jobs, seed=seed, trust=trust, report=report)
    if as_json:
        print_json([grade.as_dict() for grade in found.grades])
    else:
        console().print(_class_table(lab, found))
        print_notes(
            [
                f"{len(found.grades) - len(found.again)} graded now, {len(found.again)} kept from before",
                f"{out / GRADEBOOK}, and feedback in {out / FEEDBACK}",
            ]
        )
    if found.failed:
        lines = [f"{student}: {reason}" for student, reason in found.failed]
        raise RunError(
            "\n  ".join(
                [f"{len(lines)} could not be graded, for no fault of theirs. Cure: call the command again:", *lines]
            )
        )


def _class_table(lab: Lab, found: Graded) -> Table:
    from distsim.grading.result import shown

    table = Table(title=Text(f"{lab.key}, {shown(lab.points)} points"), title_justify="left", title_style="bold")
    table.add_column("student")
    table.add_column("points", justify="right")
    table.add_column("lost in")
    table.add_column("sha256")
    for grade in found.grades:
        lost = ", ".join(result.check for result in grade.results if not result.full)
        table.add_row(Text(grade.name or grade.student), shown(grade.points), Text(lost), grade.sha256[:12])
    return table
