"""Folders as nbgrader, Moodle and Canvas export them, and archives of such folders."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from distsim.errors import InputError
from distsim.grading.class_folder import ClassFolder, submissions
from distsim.grading.feedback import feedback
from distsim.grading.grade import Grade
from distsim.grading.gradebook import gradebook
from distsim.grading.lab import Lab

MOODLE = {
    "Zoë Müller-Lüdenscheidt_1001_assignsubmission_file/tasks.py": "zoe",
    "Zoë Müller-Lüdenscheidt_1001_assignsubmission_onlinetext/onlinetext.html": "<p>see my file</p>",
    "Group A-Ada Byron_1002_assignsubmission_file_/tasks (1).py": "ada",
    "Ada Byron_1003_assignsubmission_file_/90_sum/tasks.py": "another ada",
    "J. de la Cruz_1004_assignsubmission_onlinetext_/onlinetext.html": "<p>def summed(): ...</p>",
    "Jörg 'O_Neil_1005_assignsubmission_file_/solution.zip": "PK",
    "Li Wu_1006_assignsubmission_file_tasks.py": "flat",
}
CANVAS = {
    "byronada_12345_67890_tasks.py": "ada",
    "byronada_LATE_12346_67891_tasks-1.py": "another ada",
    "müllerzoë_12347_67892_tasks.py": "first",
    "müllerzoë_LATE_12347_70001_tasks-2.py": "third",
    "müllerzoë_LATE_12347_70000_tasks-1.py": "second",
    "wuli_12348_67899_lab.ipynb": "{}",
    "gradebook.csv": "ID",
}
NBGRADER = {
    "ada/90_sum/tasks.py": "ada",
    "ada/90_sum/timestamp.txt": "2026-11-23 01:00:00 UTC",
    "zoë müller/90_sum/tasks.py": "zoe",
    "bob/89_other/tasks.py": "no lab of ours",
}


def laid(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def zipped(folder: Path, archive: Path, top: str = "") -> Path:
    with zipfile.ZipFile(archive, "w") as made:
        for path in sorted(folder.rglob("*")):
            made.write(path, Path(top) / path.relative_to(folder))
    return archive


def contents(found: ClassFolder) -> dict[str, str | None]:
    return {one.student: one.content.decode() if one.content is not None else None for one in found.submissions}


@pytest.fixture(params=["folder", "archive", "archive of the folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Lays files as a folder, as a .zip, and as a .zip with the folder in it."""

    def make(files: dict[str, str]) -> Path:
        folder = laid(tmp_path / "class", files)
        if request.param == "folder":
            return folder
        return zipped(folder, tmp_path / "class.zip", "" if request.param == "archive" else "class")

    return make


def test_moodle(place, lab: Lab) -> None:  # type: ignore[no-untyped-def]
    found = submissions(place(MOODLE), lab)
    assert contents(found) == {
        "Participant 1001": "zoe", "Participant 1002": "ada", "Participant 1003": "another ada",
        "Participant 1004": None, "Participant 1005": None, "Participant 1006": "flat",
    }  # fmt: skip
    zoe, ada, other, text, archive, _ = found.submissions
    assert (zoe.name, ada.name, other.name) == ("Zoë Müller-Lüdenscheidt", "Group A-Ada Byron", "Ada Byron")
    assert archive.name == "Jörg 'O_Neil"
    assert zoe.remarks == ("What was typed into Moodle's page (online text) was not read.",)
    assert text.remarks == zoe.remarks
    assert "has no file" in text.missing
    assert "has solution.zip" in archive.missing
    assert found.unread == []


def test_canvas(place, lab: Lab) -> None:  # type: ignore[no-untyped-def]
    found = submissions(place(CANVAS), lab)
    assert contents(found) == {"12345": "ada", "12346": "another ada", "12347": "third", "12348": None}
    ada, late, several, notebook = found.submissions
    assert (ada.name, ada.remarks) == ("byronada", ())
    assert late.remarks == ("Handed in late.",)
    assert several.remarks == ("Handed in late.", "Of 3 files handed in, the newest was graded: tasks-2.py.")
    assert "has lab.ipynb" in notebook.missing
    assert found.unread == ["gradebook.csv"]


def test_nbgrader(place, lab: Lab) -> None:  # type: ignore[no-untyped-def]
    found = submissions(place(NBGRADER), lab)
    assert contents(found) == {"ada": "ada", "bob": None, "zoë müller": "zoe"}
    assert [one.name for one in found.submissions] == ["", "", ""]


def test_of_several_files_in_moodles_folder_the_newest_counts(lab: Lab, tmp_path: Path) -> None:
    folder = laid(
        tmp_path / "class", {f"A_1_assignsubmission_file/{name}": name for name in ("tasks.py", "tasks (2).py")}
    )
    for name, when in (("tasks.py", 2000.0), ("tasks (2).py", 1000.0)):
        os.utime(folder / "A_1_assignsubmission_file" / name, (when, when))
    (one,) = submissions(folder, lab).submissions
    assert (one.content, one.remarks) == (b"tasks.py", ("Of 2 files handed in, the newest was graded: tasks.py.",))
    os.utime(folder / "A_1_assignsubmission_file" / "tasks.py", (1000.0, 1000.0))
    (one,) = submissions(folder, lab).submissions
    assert one.content == b"tasks (2).py"


def test_the_gradebook_has_the_platforms_key_and_the_name(lab: Lab, tmp_path: Path) -> None:
    found = submissions(laid(tmp_path / "class", MOODLE | CANVAS), lab).submissions
    results = [check.lost("") for check in lab.checks.values()]
    grades = [Grade(one.student, lab.key, "", "", "", 0, results, one.remarks, one.name) for one in found]
    rows = [line.split(",")[:2] for line in gradebook(grades, lab).splitlines()]
    assert rows[:2] == [["student", "name"], ["12345", "byronada"]]
    assert ["Participant 1001", "Zoë Müller-Lüdenscheidt"] in rows
    assert "Student: Zoë Müller-Lüdenscheidt, Participant 1001. Graded" in feedback(grades[4])
    assert Grade.of(grades[4].as_dict()).name == grades[4].name


def test_an_archive_of_one_student_alone_keeps_the_students_name(lab: Lab, tmp_path: Path) -> None:
    for files in ({"ada/tasks.py": "x"}, {"ada/90_sum/tasks.py": "x"}):
        shutil.rmtree(tmp_path / "class", ignore_errors=True)
        archive = zipped(laid(tmp_path / "class", files), tmp_path / "class.zip")
        (one,) = submissions(archive, lab).submissions
        assert one.student == "ada"
        assert one.path == archive / next(iter(files))


class Unmarked(zipfile.ZipInfo):
    """A name in UTF-8 that is not marked as such."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802 - zipfile's
        return self.filename.encode(), self.flag_bits


def test_archives_of_other_programs(lab: Lab, tmp_path: Path) -> None:
    """A Mac's, with its own files and names not marked as UTF-8; one of Windows with backslashes; a link."""
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as made:
        made.writestr(Unmarked("Zoë/tasks.py"), "zoe")
        made.writestr("__MACOSX/Zoë/._tasks.py", "x")
        made.writestr("ada\\tasks.py", "ada")
        link = zipfile.ZipInfo("eve/tasks.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(link, "/etc/passwd")
    found = submissions(tmp_path / "class.zip", lab)
    assert contents(found) == {"Zoë": "zoe", "ada": "ada", "eve": None}
    assert "symbolic link" in found.submissions[2].missing


def broken(archive: Path) -> None:
    archive.write_bytes(b"PK\x03\x04" + bytes(100))


def truncated(archive: Path) -> None:
    zipped(laid(archive.parent / "class", {"ada/tasks.py": "x" * 1000}), archive)
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b"x" * 1000, b"y" * 1000))


def outside(archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("../ada/tasks.py", "x")


def nobody(archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("essay.pdf", "x")


def twice(archive: Path) -> None:
    zipped(laid(archive.parent / "class", {"12345/tasks.py": "x", "byronada_12345_67890_tasks.py": "y"}), archive)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (broken, "no .zip"), (truncated, "ada/tasks.py': cannot be unpacked"), (outside, "outside of the archive"),
        (nobody, "has no submission in it"), (twice, "12345': is the key of several"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_gets_one_message(make, words: str, lab: Lab, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "class.zip")
    with pytest.raises(InputError) as raised:
        submissions(tmp_path / "class.zip", lab)
    assert words in str(raised.value)
    assert "Cure: " in str(raised.value)
    assert not list(Path("/tmp").glob("distsim-class-*/ada"))


def test_a_member_that_is_far_too_large_is_not_unpacked(lab: Lab, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "class.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("ada/tasks.py", b"#" * 200_000_000)
    (ada,) = submissions(tmp_path / "class.zip", lab).submissions
    assert ada.content is None
    assert "more than 1 MB" in ada.missing
