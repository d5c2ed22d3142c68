"""The pages beside the chapters: what they name is there, and what is there is named."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

COURSE = Path(__file__).parents[2] / "course"
SYLLABUS = (COURSE / "README.md").read_text("utf-8")
GLOSSARY = (COURSE / "GLOSSARY.md").read_text("utf-8")
ROWS = re.findall(
    r"^\| (?:\[)?(\d\d[b-z]?) ([^|\]]+?)(?:\]\((\S+)\))?(?: \(coming\))? \|(.*)\|$", SYLLABUS, re.MULTILINE
)
PAGES = [COURSE / name for name in ("README.md", "GLOSSARY.md", "CLAIMS.md", "FOR_INSTRUCTORS.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    for link in links:
        if not link.startswith("https://"):
            assert (COURSE / link).exists(), link


def test_chapters_that_are_there_are_linked_and_the_others_are_coming() -> None:
    assert [number for number, *_ in ROWS if number.isdecimal()] == [f"{number:02d}" for number in range(13)]
    assert [number for number, *_ in ROWS] == sorted(number for number, *_ in ROWS)
    there = {path.name for path in COURSE.glob("[0-9][0-9]*_*.ipynb")}
    assert {link for *_, link, _ in ROWS if link} == there
    for line in SYLLABUS.splitlines():
        if re.match(r"\| \[?\d\d[b-z]? ", line):
            assert ("(coming)" in line) != (".ipynb) |" in line.split("|")[1] + "|"), line


def test_modules_of_the_syllabus_exist() -> None:
    modules = {name for *_, rest in ROWS for name in re.findall(r"`(distsim[\w.]*)`", rest)}
    assert len(modules) > 5
    for name in modules:
        assert find_spec(name) is not None, name


def test_commands_of_the_syllabus_are_there() -> None:
    named = re.findall(r"`python -m (distsim[\w.]+)", SYLLABUS)
    assert named
    assert all(find_spec(name) for name in named)


def test_the_glossary_is_in_order_and_short() -> None:
    entries = re.findall(r"^## (.+)\n\n(.+)\n", GLOSSARY, re.MULTILINE)
    words = [word for word, _ in entries]
    assert len(words) == GLOSSARY.count("\n## ") > 50
    assert words == sorted(set(words))
    for word, text in entries:
        assert word == word.lower(), "an anchor is the same in JupyterLab and elsewhere only without capitals"
        assert text.endswith(".")
        assert len(re.findall(r"[.:;] ", text)) <= 3, word
        assert len(text) <= 220, word
