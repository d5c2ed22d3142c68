"""The students' version of all labs: no solution, no wrong or second one, no outputs; and a lab copied to work in."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from distsim.errors import InputError
from distsim.files import write_text
from distsim.grading import metadata
from distsim.grading.lab import CHECKS, NOTEBOOK, SOLUTION, TASKS, Lab
from distsim.grading.result import shown
from distsim.grading.stub import removed_lines, solution_of, up_to_date

README = "README.md"
MOST_SHOWN = 5
LONG_CHARACTERS = 40  # of a line that nobody writes again by chance


def release(labs: Sequence[Lab], out: Path) -> list[Path]:
    """Writes a folder for each lab into `out`, and a README that tells how to begin. Gives the files written.

    Raises InputError, and leaves nothing, where `out` has something in it already, a tasks.py is not what its solution
    gives, a notebook's metadata are wrong, or a line of a solution would be in a released file.
    """
    _check_new(out)
    for lab in labs:
        _check(lab)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for lab in labs:
        written += copy(lab, out / lab.key)
    write_text(out / README, _readme(labs))
    if found := leaks(labs, out):
        shutil.rmtree(out)
        raise InputError(
            f"the release would give away {len(found)} lines of solutions: {'; '.join(found[:MOST_SHOWN])}. "
            "Cure: say it otherwise in the files that students get"
        )
    return [*written, out / README]


def start(lab: Lab, folder: Path) -> Path:
    """Copies a lab into a folder of its own in `folder`, to work in. Raises InputError where that is there already."""
    place = folder / lab.key
    if place.exists():
        rule = "is there already, and nothing is overwritten"
        raise InputError.of("folder", str(place), rule, "name another folder, or move this one away")
    copy(lab, place)
    return place


def copy(lab: Lab, place: Path) -> list[Path]:
    """The files of a lab that students get, its notebook as if it had never been run."""
    try:
        place.mkdir(parents=True)
    except OSError as error:
        raise InputError.of("folder", str(place), f"cannot be made ({error.strerror})", "name one of yours") from None
    sources = [*lab.pristine, lab.folder / TASKS]
    for source in sources:
        if source.name == NOTEBOOK:
            metadata.write(metadata.without_outputs(metadata.read(source)), place / NOTEBOOK)
        else:
            shutil.copyfile(source, place / source.name)
    return [place / source.name for source in sources]


def leaks(labs: Sequence[Lab], out: Path) -> list[str]:
    """The lines of solutions that stand in a file of `out`, as its file and text.

    A line stands there as a line of its own, also commented out; a long one also inside of another.
    """
    secret = {line for lab in labs if (lab.folder / SOLUTION).is_file() for line in removed_lines(solution_of(lab))}
    found = []
    for path in sorted(out.rglob("*")):
        if path.is_file():
            found += [f"{path.relative_to(out)}: {line}" for line in _lines(path) if _tells(line, secret)]
    return found


def _tells(line: str, secret: Iterable[str]) -> bool:
    bare = line.lstrip("# ").strip("` ")
    return any(bare == one or (len(one) >= LONG_CHARACTERS and one in line) for one in secret)


def _lines(path: Path) -> list[str]:
    if path.suffix == ".ipynb":
        return [line.strip() for cell in metadata.read(path).cells for line in cell.source.splitlines()]
    return [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines()]


def _check_new(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError.of("folder of the release", str(out), "has something in it", "name one that is new or empty")


def _check(lab: Lab) -> None:
    if not up_to_date(lab):
        rule = f"is not what its {SOLUTION} gives"
        raise InputError.of(TASKS, str(lab.folder / TASKS), rule, f"write it anew: distsim lab stub {lab.number}")
    if wrong := metadata.problems(lab):
        raise InputError.of(
            f"{NOTEBOOK}", str(lab.folder / NOTEBOOK), f"has wrong metadata ({'; '.join(wrong)})",
            f"make its check cells as {CHECKS} says",
        )  # fmt: skip


def _readme(labs: Sequence[Lab]) -> str:
    rows = [
        f"| [{lab.key}]({lab.key}/{NOTEBOOK}) | {lab.title}: {lab.about.summary} | {lab.about.minutes} "
        f"| {shown(lab.points)} |"
        for lab in labs
    ]
    return "\n".join(
        [
            "# Labs",
            "",
            "| lab | | minutes | points |",
            "|---|---|---:|---:|",
            *rows,
            "",
            f"Each folder has a notebook, `{NOTEBOOK}`, which asks, and a file, `{TASKS}`, in which you answer.",
            "Install what they need by `pip install 'distsim-course[course,labs]'`; `distsim doctor` tells what is",
            "missing.",
            "",
            "```",
            f"distsim lab run {labs[0].number} --labs .",
            f"distsim grade {labs[0].number} --labs . --submission {labs[0].key}",
            "```",
            "",
            "The first runs your code for real. The second gives the points that your instructor would see; the check",
            f"cells of the notebook give the same. Only `{TASKS}` is graded.",
            "",
        ]
    )
