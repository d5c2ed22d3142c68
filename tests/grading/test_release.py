"""What students get, and that no solution is in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from distsim.errors import InputError
from distsim.grading import metadata
from distsim.grading.lab import Lab, all_labs
from distsim.grading.release import leaks, release, start, start_contest
from distsim.grading.stub import removed_lines, solution_of

FILES = {"lab.ipynb", "tasks.py", "checks.py", "ranks.py", "scenario.toml", "lab.toml"}


def test_the_release_is_whole_and_gives_nothing_away(lab: Lab, shelf: Path, tmp_path: Path) -> None:
    notebook = metadata.read(lab.folder / "lab.ipynb")
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="an output")]
    metadata.write(notebook, lab.folder / "lab.ipynb")
    (lab.folder / "other.py").write_text("another = 'solution'")
    written = release(all_labs(shelf), tmp_path / "out")
    assert {path.name for path in written} == FILES | {"README.md"}
    assert set(written) == {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    everything = "\n".join(path.read_text() for path in written)
    assert "an output" not in everything
    secret = removed_lines(solution_of(lab))
    assert len(secret) >= 5
    assert not [line for line in secret if line in everything]
    released = Lab.at(tmp_path / "out" / "90_sum")
    assert released.sha256() != ""
    assert list(released.checks) == list(lab.checks)
    assert "| [90_sum](90_sum/lab.ipynb) |" in (tmp_path / "out" / "README.md").read_text()


def test_further_files_of_a_lab_are_released(lab: Lab, shelf: Path, tmp_path: Path) -> None:
    text = (lab.folder / "lab.toml").read_text()
    (lab.folder / "lab.toml").write_text(f'{text}files = ["data.csv"]\n')
    (lab.folder / "data.csv").write_text("1,2")
    release(all_labs(shelf), tmp_path / "out")
    assert (tmp_path / "out" / "90_sum" / "data.csv").read_text() == "1,2"


@pytest.fixture
def entry(shelf: Path) -> Path:
    """An entry of a contest beside the labs."""
    path = shelf / "15_contest" / "my_entries" / "first" / "entry.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[policy]\n")
    return path


def test_the_contest_is_released_with_the_labs_beside_it(entry: Path, shelf: Path, tmp_path: Path) -> None:
    written = release(all_labs(shelf), tmp_path / "out")
    assert tmp_path / "out" / entry.relative_to(shelf) in written
    assert "[15_contest](15_contest/lab.ipynb)" in (tmp_path / "out" / "README.md").read_text()


def test_a_line_of_a_solution_in_the_contest_is_refused(entry: Path, lab: Lab, shelf: Path, tmp_path: Path) -> None:
    entry.write_text(f"# {min(removed_lines(solution_of(lab)), key=len)}\n")
    with pytest.raises(InputError, match=r"give away.*entry\.toml"):
        release(all_labs(shelf), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_contest_is_copied_out_of_the_labs_that_are_named(entry: Path, shelf: Path, tmp_path: Path) -> None:
    """Also where a folder above has the contest's name."""
    above = tmp_path / "deep" / "15_contest" / "labs"
    shutil.copytree(shelf, above)
    place = start_contest(tmp_path / "mine", above)
    assert (place / entry.relative_to(shelf / "15_contest")).read_text() == entry.read_text()
    assert place == tmp_path / "mine" / "15_contest"
    with pytest.raises(InputError, match=r"--labs.*has no 15_contest.*Cure"):
        start_contest(tmp_path / "other", shelf / "90_sum")
    assert not (tmp_path / "other").exists()


def test_a_line_of_a_solution_in_another_file_is_refused(lab: Lab, shelf: Path, tmp_path: Path) -> None:
    with (lab.folder / "ranks.py").open("a") as stream:
        stream.write("\n# tensor += arriving\n#     self.count = self.count + number\n")
    with pytest.raises(InputError, match=r"give away.*ranks\.py: #     self\.count"):
        release(all_labs(shelf), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_line_of_a_solution_in_a_notebook_is_found(lab: Lab, tmp_path: Path) -> None:
    notebook = metadata.read(lab.folder / "lab.ipynb")
    text = "Write this first, and not `sending = dist.isend(tensor)`:\n\n    travelling = tensor.clone()"
    notebook.cells.append(nbformat.v4.new_markdown_cell(text))
    (tmp_path / "out").mkdir()
    metadata.write(notebook, tmp_path / "out" / "lab.ipynb")
    assert leaks([lab], tmp_path / "out") == ["lab.ipynb: travelling = tensor.clone()"]


def test_a_long_line_of_a_solution_is_found_inside_of_another(lab: Lab, tmp_path: Path) -> None:
    long = "dist.recv(arriving, (rank - NEXT_DOOR_NEIGHBOUR) % ranks)"
    assert long in removed_lines(solution_of(lab))
    text = f"Call {long} each time; `tensor += arriving` is short."
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").write_text(f"{text}\n")
    assert leaks([lab], tmp_path / "out") == [f"README.md: {text}"]


def test_a_stub_that_is_old_is_refused(lab: Lab, shelf: Path, tmp_path: Path) -> None:
    (lab.folder / "tasks.py").write_text("# old")
    with pytest.raises(InputError, match="distsim lab stub 90"):
        release(all_labs(shelf), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_over(lab: Lab, shelf: Path, tmp_path: Path) -> None:
    place = start(lab, tmp_path / "mine")
    assert place == tmp_path / "mine" / "90_sum"
    assert {path.name for path in place.iterdir()} == FILES
    (place / "tasks.py").write_text("# my work")
    with pytest.raises(InputError, match="nothing is overwritten"):
        start(lab, tmp_path / "mine")
    assert (place / "tasks.py").read_text() == "# my work"
    with pytest.raises(InputError, match="has something in it"):
        release(all_labs(shelf), tmp_path / "mine")
