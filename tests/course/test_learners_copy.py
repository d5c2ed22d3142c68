"""The learner's copy: whole, without solutions, and no work of a learner is lost when the package changes."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from distsim import material
from distsim.course import learners_copy
from distsim.course.cells import GUESS
from distsim.course.learners_copy import FOLDER, lay, usual_folder
from distsim.errors import InputError
from distsim.grading.lab import all_labs, find, untouched
from distsim.grading.metadata import without_outputs
from distsim.grading.release import leaks, release
from tests.pages import ROOT

CHAPTER, PAGE, TASKS = (
    Path("course/03_stragglers.ipynb"), Path("course/GLOSSARY.md"), Path("labs/03_ring/tasks.py"),
)  # fmt: skip


def said(file: Path, version: int) -> str:
    """What a version of the material says in a file."""
    text = f"{file}, version {version}"
    if file != CHAPTER:
        return text
    cells = [nbformat.v4.new_markdown_cell(text, id="one")]
    return str(nbformat.writes(nbformat.v4.new_notebook(cells=cells))) + "\n"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the record, with its content."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != material.RECORD]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Material of one chapter, one page and one lab, as a package has it."""
    root = tmp_path / "package"
    for file in (CHAPTER, PAGE, TASKS, Path("labs/README.md")):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(said(file, 1))
    for name in material.LAB_FILES:
        (root / TASKS).with_name(name).write_text("" if name.endswith(".toml") else f"{name}, version 1")
    return root


def test_it_has_all_chapters_explorers_and_pages(tmp_path: Path) -> None:
    laid = lay(tmp_path / "mine")
    found = contents(tmp_path / "mine")
    assert set(found) == {file.as_posix() for file in laid.new}
    course = [*(ROOT / "course").glob("*.*"), *(ROOT / "course" / "explorers").glob("*.ipynb")]
    assert len(course) > 20
    for path in course:
        if not re.match(r"\d\d[b-z]?_", path.name):
            assert found[path.relative_to(ROOT).as_posix()] == path.read_bytes()
    assert not [name for name in found if "exercises" in name or "solution" in name or "wrong" in name]


@pytest.mark.parametrize("path", sorted((ROOT / "course").glob("[0-9][0-9]*_*.ipynb")), ids=lambda path: path.stem)
def test_a_chapter_shows_nothing_from_its_guess_on_and_is_else_the_same(tmp_path: Path, path: Path) -> None:
    lay(tmp_path)
    ours, theirs = (nbformat.read(one, as_version=4) for one in (path, tmp_path / "course" / path.name))
    guess = next(place for place, cell in enumerate(ours.cells) if GUESS in cell.metadata.get("tags", ()))
    told = [cell for cell in theirs.cells[guess:] if cell.cell_type == "code"]
    assert len(told) > 10
    assert not any(cell.outputs or cell.execution_count for cell in told)
    assert theirs.cells[:guess] == ours.cells[:guess]
    assert without_outputs(theirs) == without_outputs(ours)


def test_its_labs_are_those_that_a_release_gives_to_students(tmp_path: Path) -> None:
    lay(tmp_path / "mine")
    labs = all_labs(ROOT / "labs")
    release(labs, tmp_path / "released")
    mine, released = contents(tmp_path / "mine" / "labs"), contents(tmp_path / "released")
    del mine["README.md"], released["README.md"]
    assert mine == released
    assert leaks(labs, tmp_path / "mine" / "labs") == []


def test_every_link_of_a_page_leads_to_a_file_of_the_copy(tmp_path: Path) -> None:
    lay(tmp_path)
    for page in (*tmp_path.rglob("*.md"), *tmp_path.rglob("*.ipynb")):
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text("utf-8")):
            if re.match(r"[./\w-]+\.(md|ipynb|svg|py)$", link):
                assert (page.parent / link).exists(), (page, link)


def test_a_second_time_changes_nothing(source: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    assert len(lay(mine, source).new) == 3 + len(material.LAB_FILES)
    (mine / CHAPTER).write_text("my answers")
    (mine / "notes.txt").write_text("my notes")
    before = contents(mine)
    for _ in range(2):
        again = lay(mine, source)
        assert (again.new, again.updated, again.beside) == ([], [], [])
    assert contents(mine) == before


def test_an_update_replaces_what_was_left_alone_and_keeps_what_was_changed(source: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    lay(mine, source)
    (mine / CHAPTER).write_text("my answers")
    for file in (CHAPTER, PAGE):
        (source / file).write_text(said(file, 2))
    beside = CHAPTER.with_name("03_stragglers.new.ipynb")
    laid = lay(mine, source)
    assert (laid.new, laid.updated, laid.beside) == ([], [PAGE], [(CHAPTER, beside)])
    assert (mine / CHAPTER).read_text() == "my answers"
    assert (mine / beside).read_text() == said(CHAPTER, 2)
    assert (mine / PAGE).read_text() == said(PAGE, 2)
    assert (mine / TASKS).read_text() == "tasks.py, version 1"
    assert lay(mine, source).beside == []


def test_a_new_version_that_the_learner_works_in_is_kept_too(source: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    lay(mine, source)
    (mine / CHAPTER).write_text("my answers")
    (source / CHAPTER).write_text(said(CHAPTER, 2))
    ((_, second),) = lay(mine, source).beside
    (source / CHAPTER).write_text(said(CHAPTER, 3))
    assert lay(mine, source).beside == [(CHAPTER, second)]  # nobody had touched it
    assert (mine / second).read_text() == said(CHAPTER, 3)
    (mine / second).write_text("my answers in version 3")
    (source / CHAPTER).write_text(said(CHAPTER, 4))
    ((_, fourth),) = lay(mine, source).beside
    texts = [(mine / file).read_text() for file in (CHAPTER, second, fourth)]
    assert texts == ["my answers", "my answers in version 3", said(CHAPTER, 4)]


def test_a_file_that_was_deleted_comes_back_as_new(source: Path, tmp_path: Path) -> None:
    lay(tmp_path / "mine", source)
    (tmp_path / "mine" / CHAPTER).unlink()
    assert lay(tmp_path / "mine", source).new == [CHAPTER]


def test_a_link_in_the_place_of_a_file_is_the_learners(source: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    lay(mine, source)
    (tmp_path / "elsewhere").write_text("my answers, kept elsewhere")
    (mine / CHAPTER).unlink()
    (mine / CHAPTER).symlink_to(tmp_path / "elsewhere")
    (source / CHAPTER).write_text(said(CHAPTER, 2))
    assert [file for file, _ in lay(mine, source).beside] == [CHAPTER]
    assert (tmp_path / "elsewhere").read_text() == "my answers, kept elsewhere"
    assert (mine / CHAPTER).is_symlink()


class Broken:
    """Writes files until the third, which raises."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.written, self.real = error, 0, learners_copy._write

    def __call__(self, place: Path, content: bytes) -> None:
        self.written += 1
        if self.written == 3:
            raise self.error
        self.real(place, content)


ENDS = [KeyboardInterrupt(), InputError("the disk is full"), OSError(28, "No space left on device")]


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
def test_a_first_call_that_was_interrupted_is_taken_up_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    mine = tmp_path / "mine"
    with monkeypatch.context() as broken:
        broken.setattr(learners_copy, "_write", Broken(error))
        with pytest.raises((KeyboardInterrupt, InputError)):
            lay(mine, source)
    assert len(contents(mine)) == 2
    first = next(iter(contents(mine)))
    (mine / first).write_text("my answers")
    again = lay(mine, source)
    assert (len(again.new), again.updated, again.beside) == (1 + len(material.LAB_FILES), [], [])
    assert (mine / first).read_text() == "my answers"
    assert len(contents(mine)) == 3 + len(material.LAB_FILES)


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("recorded", [True, False])
def test_an_update_that_was_interrupted_doubles_and_loses_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, recorded: bool
) -> None:
    """Also where the end, such as that of the machine, left no time to record what had been laid."""
    mine = tmp_path / "mine"
    lay(mine, source)
    before = (mine / material.RECORD).read_bytes()
    (mine / CHAPTER).write_text("my answers")
    later = [CHAPTER, PAGE, Path("labs/README.md"), TASKS]
    for file in later:
        (source / file).write_text(said(file, 2))
    with monkeypatch.context() as broken:
        broken.setattr(learners_copy, "_write", Broken(error))
        with pytest.raises((KeyboardInterrupt, InputError)):
            lay(mine, source)
    if not recorded:
        (mine / material.RECORD).write_bytes(before)
    again = lay(mine, source)
    beside = CHAPTER.with_name("03_stragglers.new.ipynb")
    assert again.beside == ([] if recorded else [(CHAPTER, beside)])
    assert not set(again.updated) - set(later[2:])
    assert {path.name for path in (mine / "course").iterdir()} == {CHAPTER.name, beside.name, PAGE.name}
    assert (mine / CHAPTER).read_text() == "my answers"
    assert all((mine / file).read_text() == said(file, 2) for file in later[1:])
    assert (mine / beside).read_text() == said(CHAPTER, 2)


@pytest.mark.parametrize("record", ["", "[]", "no JSON"])
def test_without_its_record_every_file_that_differs_is_the_learners(source: Path, tmp_path: Path, record: str) -> None:
    mine = tmp_path / "mine"
    lay(mine, source)
    (mine / CHAPTER).write_text("my answers")
    (mine / material.RECORD).write_text(record)
    laid = lay(mine, source)
    assert laid.updated == []
    assert [file for file, _ in laid.beside] == [CHAPTER]
    assert (mine / CHAPTER).read_text() == "my answers"


def test_without_its_record_a_link_is_the_learners_too(source: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    lay(mine, source)
    (mine / CHAPTER).unlink()
    (mine / CHAPTER).symlink_to(tmp_path / "elsewhere")
    (mine / material.RECORD).write_text("{}")
    assert [file for file, _ in lay(mine, source).beside] == [CHAPTER]
    assert (mine / CHAPTER).is_symlink()


def test_a_folder_with_something_else_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("my thesis")
    with pytest.raises(InputError, match="holds something else"):
        lay(tmp_path / "mine", source)
    assert contents(tmp_path / "mine") == {"thesis.tex": b"my thesis"}
    with pytest.raises(InputError, match="holds something else"):
        lay(tmp_path / "mine" / "thesis.tex", source)
    with pytest.raises(InputError, match="cannot be written to"):
        lay(Path("/proc/mine"), source)


def test_a_copy_is_found_from_inside(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert usual_folder() == tmp_path / "distsim-course"
    lay(tmp_path / "mine", source)
    monkeypatch.chdir(tmp_path / "mine" / "course")
    assert usual_folder() == tmp_path / "mine"


def test_a_lab_is_started_as_it_was_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the learner has written into the copy's own folder of the lab."""
    lay(tmp_path)
    (tmp_path / TASKS).write_text("my answers")
    monkeypatch.chdir(tmp_path)
    found = find("03")
    assert found.folder == tmp_path / "labs" / "03_ring"
    assert untouched(found).folder == ROOT / "labs" / "03_ring"
    original = find("03", ROOT / "labs")
    assert untouched(original) == original


def test_the_copy_in_a_clone_is_none_of_the_repositorys_files() -> None:
    assert f"{FOLDER}/" in (ROOT / ".gitignore").read_text().splitlines()
