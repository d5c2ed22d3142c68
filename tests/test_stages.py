"""`make test` and `make test-more` together run every test once."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MARKS = ("more", "alone")


def stages(target: str) -> list[list[str]]:
    """The words of each call of pytest by a target, but those that repeat property tests."""
    told = subprocess.run(
        ["make", "--dry-run", "--old-file=lint", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in told.splitlines() if " -m pytest " in line]
    return [shlex.split(line.partition(" -m pytest ")[2]) for line in lines if not line.startswith("DISTSIM_EXAMPLES")]


@pytest.fixture(scope="module")
def both() -> list[list[str]]:
    return [*stages("test"), *stages("test-more")]


def files(words: list[str]) -> set[str]:
    """The files that a call of pytest names; it reads all where it names none."""
    return {word for word in words if re.search(r"\.(py|ipynb)$", word)}


def marked(mark: str) -> set[str]:
    """The test files that use a mark."""
    paths = (ROOT / "tests").rglob("test_*.py")
    return {str(path.relative_to(ROOT)) for path in paths if f"mark.{mark}" in path.read_text("utf-8")}


@pytest.mark.parametrize("own", [*itertools.product([False, True], repeat=len(MARKS))])
def test_one_stage_runs_a_test_with_these_marks(both: list[list[str]], own: tuple[bool, ...]) -> None:
    of_test = dict(zip(MARKS, own, strict=True))
    of_tests = [words for words in both if "-m" in words]
    (stage,) = [words for words in of_tests if eval(words[words.index("-m") + 1], {}, of_test)]
    named = files(stage)
    if any(own):
        long = marked("more") | marked("whole") | marked("thorough") if of_test["more"] else marked("alone")
        assert named == (long & marked("alone") if of_test["alone"] else long)
    else:
        assert not named, "this stage collects all files"


def test_every_chapter_is_executed_once(both: list[list[str]]) -> None:
    of_chapters = [words for words in both if "-m" not in words]
    chapters = [name for words in of_chapters for name in sorted(files(words))]
    assert sorted(chapters) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "course").glob("*.ipynb"))
    assert all("--nbval-lax" in words for words in of_chapters)
