"""Releases labs to students: the labs without solutions and outputs. Also copies one lab, or the contest, to work in.

For nbgrader, the same labs become the assignments of a course folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from distsim import material
from distsim.errors import InputError
from distsim.extras import pip_install
from distsim.files import make_folder, write_text
from distsim.grading import metadata, nbgrader
from distsim.grading.lab import CHECKS, NOTEBOOK, SOLUTION, TASKS, Lab
from distsim.grading.result import shown
from distsim.grading.stub import removed_lines, solution_of, up_to_date

README = "README.md"
MOST_SHOWN = 5
CONTEST_SAID = (
    "",
    f"[{material.CONTEST}]({material.CONTEST}/{NOTEBOOK}) is a contest without tasks and checks. Its notebook says how",
    "to race, and `distsim contest` gives the points.",
)
LONG_CHARACTERS = 40  # of a line too long to be repeated by chance


def release(labs: Sequence[Lab], out: Path) -> list[Path]:
    """Writes a folder for each lab, the contest that lies beside them, and a README into `out`. Returns the files.

    Raises InputError, and leaves no files, if `out` is not empty, a tasks.py does not match its solution, a notebook's
    metadata are wrong, or a released file has a line of a solution.
    """
    beside = labs[0].folder.parent
    texts = {README: _readme(labs, with_contest=bool(material.of_contest(beside)))}
    return _released(labs, out, out, texts, contest_of=beside)


def release_for_nbgrader(labs: Sequence[Lab], out: Path) -> list[Path]:
    """Writes a course folder of nbgrader into `out`: the labs as assignments in source/, settings and a README.

    Returns the files written. Raises InputError as `release` does.
    """
    texts = {nbgrader.SETTINGS: nbgrader.settings(labs), README: nbgrader.readme(labs)}
    return _released(labs, out, out / nbgrader.SOURCE, texts)


def _released(
    labs: Sequence[Lab], out: Path, place: Path, texts: Mapping[str, str], contest_of: Path | None = None
) -> list[Path]:
    """Writes the labs into `place` in `out`, texts by file name into `out`, and the contest of a folder of labs."""
    _check_new(out)
    for lab in labs:
        _check(lab)
    make_folder(out, "folder of the release")
    written = []
    for lab in labs:
        written += copy(lab, place / lab.key)
    written += _copy_contest(contest_of, out) if contest_of else []
    for name, text in texts.items():
        write_text(out / name, text)
        written.append(out / name)
    if found := leaks(labs, out):
        shutil.rmtree(out)
        raise InputError(
            f"the release would give away {len(found)} lines of solutions: {'; '.join(found[:MOST_SHOWN])}. "
            "Cure: reword these lines in the files that students get"
        )
    return written


def start(lab: Lab, folder: Path) -> Path:
    """Copies a lab into a new folder in `folder`. Raises InputError if the new folder exists already."""
    place = _new_place(folder, lab.key)
    copy(lab, place)
    return place


def start_contest(folder: Path, labs: Path | None = None) -> Path:
    """Copies the contest into a new folder in `folder`.

    labs: the folder of all labs; by default the package's own. Raises InputError if it has no contest, or if the new
    folder exists already.
    """
    if labs is not None and not material.of_contest(labs):
        raise InputError.of("--labs", str(labs), f"has no {material.CONTEST} in it", "leave it out, or name another")
    place = _new_place(folder, material.CONTEST)
    _copy_contest(labs or material.home() / "labs", folder)
    return place


def _new_place(folder: Path, name: str) -> Path:
    place = folder / name
    if place.exists():
        rule = "exists already, and nothing is overwritten"
        raise InputError.of("folder", str(place), rule, "name another folder, or move this one away")
    return place


def _copy_contest(labs: Path, folder: Path) -> list[Path]:
    """Copies the contest of a folder of labs into `folder`. Returns the copies; none where there is no contest."""
    copies = []
    for source in material.of_contest(labs):
        copies.append(folder / source.relative_to(labs))
        make_folder(copies[-1].parent, "folder")
        _copy(source, copies[-1])
    return copies


def copy(lab: Lab, place: Path) -> list[Path]:
    """Copies the files that students get into `place`, the notebook without outputs. Returns the copies."""
    make_folder(place, "folder")
    sources = [*lab.pristine, lab.folder / TASKS]
    for source in sources:
        _copy(source, place / source.name)
    return [place / source.name for source in sources]


def _copy(source: Path, target: Path) -> None:
    """Copies one file; a notebook without its outputs."""
    if source.name == NOTEBOOK:
        metadata.write(metadata.without_outputs(metadata.read(source)), target)
    else:
        shutil.copyfile(source, target)


def leaks(labs: Sequence[Lab], out: Path) -> list[str]:
    """The lines of solutions found in files of `out`, as file and line.

    A line counts if it stands alone or commented out; a long line also if it is part of another line.
    """
    secret = {line for lab in labs if (lab.folder / SOLUTION).is_file() for line in removed_lines(solution_of(lab))}
    found = []
    for path in sorted(out.rglob("*")):
        if path.is_file():
            found += [f"{path.relative_to(out)}: {line}" for line in _lines(path) if _leaks(line, secret)]
    return found


def _leaks(line: str, secret: Iterable[str]) -> bool:
    bare = line.lstrip("# ").strip("` ")
    return any(bare == one or (len(one) >= LONG_CHARACTERS and one in line) for one in secret)


def _lines(path: Path) -> list[str]:
    if path.suffix == ".ipynb":
        return [line.strip() for cell in metadata.read(path).cells for line in cell.source.splitlines()]
    return [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines()]


def _check_new(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError.of("folder of the release", str(out), "has something in it", "name a new or empty folder")


def _check(lab: Lab) -> None:
    if not up_to_date(lab):
        rule = f"does not match its {SOLUTION}"
        raise InputError.of(TASKS, str(lab.folder / TASKS), rule, f"write it anew: distsim lab stub {lab.number}")
    if wrong := metadata.problems(lab):
        rule = f"has wrong metadata ({'; '.join(wrong)})"
        raise InputError.of(NOTEBOOK, str(lab.folder / NOTEBOOK), rule, f"make its check cells agree with {CHECKS}")


def _readme(labs: Sequence[Lab], *, with_contest: bool) -> str:
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
            f"Each folder has a notebook, `{NOTEBOOK}`, with the tasks, and a file, `{TASKS}`, for your answers.",
            f"Install the packages by `{pip_install('torch')}`; `distsim doctor` lists missing ones.",
            "",
            "```",
            f"distsim lab run {labs[0].number} --labs .",
            f"distsim grade {labs[0].number} --labs . --submission {labs[0].key}",
            "```",
            "",
            "The first command runs your code for real. The second prints the points that your instructor sees. The",
            f"check cells of the notebook give the same points. Only `{TASKS}` is graded.",
            *([*CONTEST_SAID] if with_contest else []),
            "",
        ]
    )
