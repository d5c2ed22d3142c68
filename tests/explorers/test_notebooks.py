"""The explorers' notebooks: those of the folder are the ones that are made, they run, and what is saved is small."""

from __future__ import annotations

import base64
import os
import re
from html import escape
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.notebooks import INDEX, index, notebook
from distsim.explorers.thumbnails import KEY, Index

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "course" / "explorers"
LARGEST_BYTES, LARGEST_PICTURE_BYTES = 300_000, 100_000
RUN_SECONDS = 90


def test_the_folder_has_one_for_each_explorer_and_the_page_that_leads_to_them() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {*EXPLORERS, INDEX}


def test_the_page_leads_to_all_with_a_picture_and_its_text() -> None:
    """The notebook itself names no explorer: a new row of the table needs no change of it."""
    path = FOLDER / f"{INDEX}.ipynb"
    kept = nbformat.read(path, as_version=4)
    assert [cell.source for cell in kept.cells] == [cell.source for cell in index().cells]
    assert not [name for name in EXPLORERS if name in path.read_text("utf-8")]
    page = Index(FOLDER).html()
    for entry in EXPLORERS.values():
        held = nbformat.read(FOLDER / f"{entry.name}.ipynb", as_version=4).metadata[KEY]
        picture = base64.b64decode(held["thumbnail"])
        assert picture.startswith(b"\x89PNG")
        assert 1000 < len(picture) < LARGEST_PICTURE_BYTES
        assert re.search(r"\d", held["alt"])
        assert f'<a href="{entry.name}.ipynb">{escape(entry.title)}</a><p>{escape(entry.question)}</p>' in page
        assert f'alt="{escape(held["alt"])}"' in page


def test_a_notebook_without_a_picture_keeps_its_link(tmp_path: Path) -> None:
    nbformat.write(notebook(EXPLORERS["race"]), tmp_path / "race.ipynb")
    page = Index(tmp_path, ".html").html()
    assert "<img" not in page
    assert page.count(".html") == len(EXPLORERS)


def test_the_first_line_says_which_key_shows_the_explorer() -> None:
    for made in (index(), *map(notebook, EXPLORERS.values())):
        assert "Shift+Enter" in made.cells[0].source.splitlines()[2]


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_saved_one_is_the_one_that_is_made(name: str) -> None:
    """Else: python -m distsim.explorers.notebooks."""
    path = FOLDER / f"{name}.ipynb"
    kept = nbformat.read(path, as_version=4)
    nbformat.validate(kept)
    assert [cell.source for cell in kept.cells] == [cell.source for cell in notebook(EXPLORERS[name]).cells]
    check_saved(path, kept)


@pytest.mark.parametrize("name", EXPLORERS)
def test_it_runs_from_a_clean_kernel_and_stays_small_as_jupyterlab_saves_it(name: str, tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient")
    ran = notebook(EXPLORERS[name])
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    client.NotebookClient(ran, timeout=RUN_SECONDS, store_widget_state=False).execute(env=environment)
    (shown,) = ran.cells[1].outputs
    assert "application/vnd.jupyter.widget-view+json" in shown.data
    path = tmp_path / f"{name}.ipynb"
    nbformat.write(ran, path)
    check_saved(path, ran)


def check_saved(path: Path, saved: Any) -> None:
    """No widget state, one first heading that asks, no large output, nothing on standard error."""
    assert path.stat().st_size < LARGEST_BYTES
    assert "widgets" not in saved.metadata
    assert saved.metadata.kernelspec.name == "python3"
    text = "\n".join(cell.source for cell in saved.cells if cell.cell_type == "markdown")
    first = [line for line in text.splitlines() if line.startswith("# ")]
    assert len(first) == 1
    assert first[0].endswith("?")
    outputs = [output for cell in saved.cells if cell.cell_type == "code" for output in cell.outputs]
    assert all(output.output_type in ("display_data", "execute_result") for output in outputs)
    assert not any("FigureWidget" in str(output) for output in outputs)
