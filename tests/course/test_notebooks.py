"""Chapters are executed from a clean kernel and saved without what does not belong in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.course import notebooks
from distsim.errors import InputError, RunError

STATE = {
    "box": {"state": {"children": ["IPY_MODEL_pane", "IPY_MODEL_text", "IPY_MODEL_gone"]}},
    "pane": {"state": {"outputs": [{"output_type": "display_data", "data": {"text/plain": "a figure"}}]}},
    "text": {"state": {"value": '<p class="distsim-summary">It says.</p>'}},
}


def notebook(*sources: str) -> Any:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)


def test_a_widget_is_saved_as_what_it_drew() -> None:
    made = notebook("explorer()")
    view = {notebooks.VIEW: {"model_id": "box"}, "text/plain": "Explorer()"}
    made.cells[0].outputs = [nbformat.v4.new_output("display_data", view)]
    made.cells[0].metadata = nbformat.from_dict({"tags": ["guess"], "execution": {"iopub.busy": "now"}})
    made.metadata["widgets"] = {notebooks.STATE: {"state": STATE}}
    cleaned = notebooks.cleaned(made)
    assert [output.data for output in cleaned.cells[0].outputs] == [
        {"text/plain": "a figure"},
        {"text/html": '<p class="distsim-summary">It says.</p>'},
    ]
    assert cleaned.metadata == notebooks.METADATA
    assert cleaned.cells[0].metadata == {"tags": ["guess"]}


def test_a_warning_is_not_saved() -> None:
    made = notebook("1")
    made.cells[0].outputs = [nbformat.v4.new_output("stream", name="stderr", text="careful")]
    with pytest.raises(InputError, match="wrote to stderr: careful"):
        notebooks.cleaned(made)


def test_a_number_without_a_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "02_one_step.ipynb").touch()
    (tmp_path / "03_stragglers.ipynb").touch()
    assert [path.name[:2] for path in notebooks.chapters(tmp_path)] == ["02", "03"]
    assert [path.name[:2] for path in notebooks.chapters(tmp_path, ["03"])] == ["03"]
    with pytest.raises(InputError, match="take one of 02, 03"):
        notebooks.chapters(tmp_path, ["04"])


@pytest.mark.real
def test_a_chapter_is_executed_saved_and_asked_for_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "02_one_step.ipynb"
    nbformat.write(
        notebook("step_ms = 50.25\nprint(step_ms)", "from pathlib import Path\nprint(Path.cwd().name)"), path
    )
    assert notebooks.save(path) > 0
    saved = nbformat.read(path, as_version=4)
    assert [cell.outputs[0].text for cell in saved.cells] == ["50.25\n", f"{tmp_path.name}\n"]
    assert [cell.execution_count for cell in saved.cells] == [1, 2]
    assert notebooks.values(saved, ["step_ms", "step_ms / 2"], tmp_path) == {"step_ms": 50.25, "step_ms / 2": 25.125}
    assert len(saved.cells) == 2


@pytest.mark.real
def test_a_chapter_that_fails_is_told_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "course" / "02_one_step.ipynb"
    (path.parent / "exercises").mkdir(parents=True)
    nbformat.write(notebook("1", "1 / 0"), path)
    before = path.read_bytes()
    with pytest.raises(RunError, match="a cell failed with ZeroDivisionError"):
        notebooks.save(path)
    monkeypatch.chdir(path.parent)
    assert notebooks.main(["02"]) == 3
    assert notebooks.main(["07"]) == 2
    assert path.read_bytes() == before
    told = capsys.readouterr().err
    assert "02_one_step.ipynb: a cell failed with ZeroDivisionError" in told
    assert "course: chapter = '07'" in told
