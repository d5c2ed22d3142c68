"""The page for instructors: its plans add up to what the syllabus and the labs say, and its commands are there."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from distsim.cli.main import distsim
from distsim.material import CONTEST

COURSE = Path(__file__).parents[2] / "course"
PAGE = (COURSE / "FOR_INSTRUCTORS.md").read_text("utf-8")
SYLLABUS = (COURSE / "README.md").read_text("utf-8")
LABS = (COURSE.parent / "labs" / "README.md").read_text("utf-8")
PLANS = {
    title: body
    for title, body in re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    if "| when |" in body
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def chapters() -> dict[str, int]:
    """Minutes by number and name, of the chapters that have a time in the syllabus."""
    rows = [cells(line) for line in SYLLABUS.splitlines() if re.match(r"\| \[?\d\d[b-z]? ", line)]
    names = [re.sub(r"\[(.+)\]\(.+\)| \(coming\)", r"\1", row[0]) for row in rows]
    return {name: int(row[5].removesuffix(" min")) for name, row in zip(names, rows, strict=True) if row[5]}


def labs() -> dict[str, tuple[int, int]]:
    """Minutes and points by number and name."""
    rows = re.findall(r"^\| \[(\d\d [\w ]+)\]\(\S+\) \| [^|]+ \| (\d+) \| (\d+) \|$", LABS, re.MULTILINE)
    return {name: (int(minutes), int(points)) for name, minutes, points in rows}


def named(cell: str) -> list[str]:
    return [name.strip() for name in cell.split(",") if name.strip()]


def test_there_are_three_plans() -> None:
    assert list(PLANS) == ["One day", "Two weeks", "A term"]
    assert len(chapters()) >= 8
    assert len(labs()) >= 8


@pytest.mark.parametrize("plan", PLANS)
def test_minutes_are_those_of_the_syllabus_and_of_the_labs(plan: str) -> None:
    rows = [cells(line) for line in PLANS[plan].splitlines() if line.startswith("| ")][1:]
    of_chapters, of_labs = 0, 0
    seen: list[str] = []
    for when, read, written, minutes, handed_in in rows:
        assert handed_in, when
        spent = [chapters()[name] for name in named(read)], [labs()[name][0] for name in named(written)]
        assert int(minutes) == sum(map(sum, spent)), f"{plan}, {when}"
        of_chapters, of_labs = of_chapters + sum(spent[0]), of_labs + sum(spent[1])
        for name in named(written):
            what = "an entry for" if name.startswith(CONTEST[:2]) else "`tasks.py` of"
            assert f"{what} lab {name[:2]}: {labs()[name][1]} points" in handed_in, f"{plan}, {when}"
        seen += [f"chapter {name}" for name in named(read)] + [f"lab {name}" for name in named(written)]
    assert len(seen) == len(set(seen))
    lead = " ".join(PLANS[plan].partition("|")[0].split())
    assert f"{of_chapters + of_labs} minutes, of these {of_chapters} in chapters and {of_labs} in labs" in lead


def test_the_term_has_all_that_there_is() -> None:
    assert {name for name in chapters() if name in PLANS["A term"]} == set(chapters())
    assert {name for name in labs() if name in PLANS["A term"]} == set(labs())


@pytest.mark.parametrize("plan", PLANS)
def test_no_lab_is_before_the_first_chapter_that_leads_to_it(plan: str) -> None:
    rows = [cells(line) for line in PLANS[plan].splitlines() if line.startswith("| ")][1:]
    read = {name.split()[0]: place for place, row in enumerate(rows) for name in named(row[1])}
    written = {name[:2]: place for place, row in enumerate(rows) for name in named(row[2])}
    first: dict[str, str] = {}
    for line in SYLLABUS.splitlines():
        if found := re.match(r"\| \[?(\d\d[b-z]?) ", line):
            for lab in re.findall(r"\[(\d\d)\]\(", cells(line)[3]):
                first.setdefault(lab, found[1])
    for lab, place in written.items():
        assert lab not in first or read[first[lab]] <= place, lab


def test_its_commands_are_there() -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for language, block in blocks if language == "sh" for line in block.splitlines()]
    programs = {line[0] for line in lines}
    assert {"make", "python", "distsim"} <= programs
    for program, *words in lines:
        if program == "make":
            subprocess.run(["make", "--dry-run", *words], cwd=COURSE.parent, check=True, capture_output=True)
        elif program == "python":
            assert words[0] == "-m"
            assert find_spec(words[1])
        elif program == "distsim":
            command: click.Command | None = distsim
            while isinstance(command, click.Group):
                command = command.get_command(click.Context(command), words.pop(0))
            assert command
            known = {name for parameter in command.params for name in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= known
