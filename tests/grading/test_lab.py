"""Labs are found by what people call them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from distsim.errors import InputError
from distsim.grading.lab import Lab, all_labs, find, untouched
from distsim.material import RECORD


@pytest.mark.parametrize("asked", ["90", "sum", "90_sum"])
def test_number_and_name(shelf: Path, asked: str) -> None:
    assert find(asked, shelf).key == "90_sum"


def test_a_path_and_a_number_without_its_nought(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shelf / "90_sum").rename(shelf / "03_sum")
    assert find("3", shelf).key == "03_sum"
    monkeypatch.chdir(shelf)
    assert find("03_sum/").key == find("sum").key == "03_sum"


def test_a_lab_is_found_from_inside_of_it(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shelf / "90_sum")
    assert find("90").folder.samefile(".")
    (shelf / "90_sum" / "deep").mkdir()
    monkeypatch.chdir(shelf / "90_sum" / "deep")
    with pytest.raises(InputError, match="is none of the labs"):
        find("90")


def test_a_lab_right_below_the_root_is_in_no_copy(lab: Lab) -> None:
    below = replace(lab, folder=Path("/90_sum"))
    assert untouched(below) == below


def test_a_learners_own_lab_in_a_copy_stays_the_learners(shelf: Path) -> None:
    (shelf.parent / RECORD).write_text("{}")
    own = Lab.at(shelf / "90_sum")
    assert untouched(own) == own


def test_the_contents(lab: Lab) -> None:
    assert (lab.number, lab.name, lab.title, lab.points) == ("90", "sum", "A sum over all ranks", 5.0)
    assert list(lab.checks) == ["every_rank_has_the_sum", "the_counter_counts"]


def test_the_labs_are_named_where_there_is_no_such_one(shelf: Path) -> None:
    with pytest.raises(InputError, match="take one of 90_sum"):
        find("ring", shelf)


def test_two_labs_of_one_number_are_both_named(shelf: Path) -> None:
    shutil.copytree(shelf / "90_sum", shelf / "90_other")
    with pytest.raises(InputError, match=r"matches several labs.*90_other, 90_sum"):
        find("90", shelf)


def test_no_labs_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no lab in it"):
        all_labs(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        all_labs(tmp_path / "labs")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('title = "T"\nsummary = "S"', "minutes is missing"),
        ('title = "T"\nsummary = "S"\nminutes = "x"', "must be a whole number"),
        ('title = "T"\nsummary = "S"\nminutes = 10\nhours = 1', "is not a key of the top level"),
        ("title", "is not TOML"),
        ('title = "T"\nsummary = "S"\nminutes = 10\nfiles = ["../x"]', "files"),
    ],
)
def test_a_wrong_lab_toml_is_explained(lab: Lab, text: str, words: str) -> None:
    (lab.folder / "lab.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        Lab.at(lab.folder)


def test_a_missing_file_and_a_wrong_name(lab: Lab) -> None:
    with pytest.raises(InputError, match="call it 03_ring"):
        Lab.at(lab.folder.parent)
    (lab.folder / "ranks.py").unlink()
    with pytest.raises(InputError, match=r"has no ranks\.py"):
        Lab.at(lab.folder)


def test_every_file_that_grades_is_in_the_hash(lab: Lab) -> None:
    before = lab.sha256()
    (lab.folder / "solution.py").write_text("")
    assert lab.sha256() == before
    for path in lab.pristine:
        path.write_bytes(path.read_bytes() + b"\n")
        assert lab.sha256() != before, path
        before = lab.sha256()


def test_the_seed_stays_while_a_student_works_in_the_notebook_and_changes_with_the_checks(lab: Lab) -> None:
    first = lab.seed()
    assert 0 <= first < 2**32
    for name, same in (("lab.ipynb", True), ("tasks.py", True), ("checks.py", False), ("ranks.py", False)):
        before = lab.seed()
        (lab.folder / name).write_bytes((lab.folder / name).read_bytes() + b"\n")
        assert (lab.seed() == before) == same, name
