"""What students hand in is taken as it is, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from distsim.errors import InputError
from distsim.grading import metadata
from distsim.grading import submission as module
from distsim.grading.class_folder import submissions as class_folder
from distsim.grading.lab import Lab
from distsim.grading.submission import Submission, submission

TEXT = "x = 'Straße'\n".encode("latin-1")


def submissions(folder: Path, lab: Lab) -> list[Submission]:
    return list(class_folder(folder, lab).submissions)


@pytest.fixture
def ada(tmp_path: Path) -> Path:
    folder = tmp_path / "class" / "ada"
    folder.mkdir(parents=True)
    (folder / "tasks.py").write_bytes(TEXT)
    return folder


def test_a_folder_a_file_and_a_folder_of_several_labs(ada: Path, lab: Lab) -> None:
    for path in (ada, ada / "tasks.py"):
        found = submission(path, lab)
        assert (found.student, found.content, found.path) == ("ada", TEXT, ada / "tasks.py")
    (ada / "90_sum").mkdir()
    (ada / "tasks.py").rename(ada / "90_sum" / "tasks.py")
    assert submission(ada, lab).path == ada / "90_sum" / "tasks.py"
    assert len(submission(ada, lab).sha256) == 64


def test_a_path_that_is_not_there(tmp_path: Path, lab: Lab) -> None:
    with pytest.raises(InputError, match="is not there"):
        submission(tmp_path / "nobody", lab)
    with pytest.raises(InputError, match="is not a folder"):
        submissions(tmp_path / "nobody", lab)
    with pytest.raises(InputError, match="has no submission in it"):
        submissions(lab.folder / "wrong", lab)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(10**12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (link, "symbolic link"), (pipe, "no regular file"), (Path.mkdir, "no regular file"), (huge, "more than 1 MB"),
        (lambda _: None, "there is no tasks.py"),
    ],
)  # fmt: skip
def test_what_is_no_plain_small_file_is_not_taken(ada: Path, lab: Lab, make, words: str) -> None:  # type: ignore[no-untyped-def]
    (ada / "tasks.py").unlink()
    make(ada / "tasks.py")
    (found,) = submissions(ada.parent, lab)
    assert found.content is None
    assert found.sha256 == ""
    assert words in found.missing


def test_a_file_that_may_not_be_read(ada: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(module.os, "open", refuse)
    assert "Permission denied" in submission(ada, lab).missing


def test_a_folder_that_is_a_link_is_not_followed(ada: Path, lab: Lab) -> None:
    (ada.parent / "eve").symlink_to(ada)
    _, eve = submissions(ada.parent, lab)
    assert eve.content is None
    (ada.parent / "mallory").mkdir()
    (ada.parent / "mallory" / "90_sum").symlink_to(ada)
    assert submissions(ada.parent, lab)[-1].content is None


def test_files_and_hidden_folders_are_no_students(ada: Path, lab: Lab) -> None:
    (ada.parent / ".git").mkdir()
    (ada.parent / "notes.txt").write_text("")
    assert [one.student for one in submissions(ada.parent, lab)] == ["ada"]


def test_names_that_are_no_text_can_be_written(ada: Path, lab: Lab) -> None:
    os.mkdir(os.fsencode(ada.parent) + b"/J\xf6rg\n")
    names = [one.student for one in submissions(ada.parent, lab)]
    assert "J\\xf6rg\\n" in names


def test_the_notebook_is_remarked_upon(ada: Path, lab: Lab) -> None:
    assert submission(ada, lab).remarks == ()
    own = metadata.read(lab.folder / "lab.ipynb")
    metadata.write(own, ada / "lab.ipynb")
    assert submission(ada, lab).remarks == ()
    own.cells[-1].source = "5.0"
    del own.cells[-2]
    metadata.write(own, ada / "lab.ipynb")
    missing, edited = submission(ada, lab).remarks
    assert missing.startswith("The cell of the check every_rank_has_the_sum is missing")
    assert edited.startswith("The cell of the check the_counter_counts was edited")
    for garbage in (b"{", b"\xff\xfe", b"[]", b'{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'):
        (ada / "lab.ipynb").write_bytes(garbage)
        assert submission(ada, lab).remarks == ("lab.ipynb is no notebook that can be read. The lab's own was run.",)
    (ada / "lab.ipynb").unlink()
    (ada / "lab.ipynb").symlink_to("/dev/zero")
    assert "symbolic link" in submission(ada, lab).remarks[0]
