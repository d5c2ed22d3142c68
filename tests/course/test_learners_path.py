"""A learner's way through a copy of the course: chapters run there, cards can be read, links lead on."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from distsim import material
from distsim.course import exercises_in, notebooks
from distsim.course.cells import GUESS
from distsim.course.chapter import RECORDED
from distsim.course.learners_copy import lay
from distsim.course.record import FILE, Record
from distsim.grading.metadata import read
from tests.explorers.conftest import SCREENSHOTS
from tests.jupyterlab import Lab

ROOT = Path(__file__).parents[2]
CHAPTER = Path("course/02_one_step.ipynb")
TOUR = Path("course/00_tour.ipynb")
EXERCISES = exercises_in(ROOT / "course" / "exercises" / f"{CHAPTER.stem}.py")
POINTS = f"{sum(one.points for one in EXERCISES.values()):g}"
CARD = ".jp-Notebook .distsim-card"
DARK = "JupyterLab Dark"
DRAWN_MS = 60_000  # the most that JupyterLab may take to draw a chapter on a busy machine
# Whether these words are drawn in the panel; if not, the panel scrolls one page further.
SCROLLED_TO = """([panel, words]) => {
    if (panel.innerText.includes(words)) return true;
    panel.scrollTop += panel.clientHeight;
    return false;
}"""
# The least contrast between the words of a card and what lies behind them.
LEAST_CONTRAST = """card => {
    const rgb = colour => colour.match(/[\\d.]+/g).map(Number);
    const luminance = ([red, green, blue]) => [red, green, blue].map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
    const ground = element => {
        for (let one = element; one; one = one.parentElement) {
            const colour = rgb(getComputedStyle(one).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    return Math.min(...[card, ...card.querySelectorAll("*")].map(element => {
        const pair = [rgb(getComputedStyle(element).color), ground(element)].map(luminance).sort((a, b) => b - a);
        return (pair[0] + 0.05) / (pair[1] + 0.05);
    }));
}"""


def hashes(folder: Path, *, but: str = "") -> dict[str, str]:
    """The hash of each file, without those whose path has `but` in it."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and not (but and but in path.as_posix())
    }


@pytest.mark.real
@pytest.mark.more
def test_a_chapter_that_runs_in_a_copy_changes_no_other_file(tmp_path: Path) -> None:
    """Neither in the copy nor in the repository, so `git status` stays clean."""
    lay(tmp_path)
    originals = [ROOT / "course", ROOT / "labs"]
    before, copied = [hashes(folder) for folder in originals], hashes(tmp_path, but=CHAPTER.name)
    made = notebooks.executed(read(tmp_path / CHAPTER), (tmp_path / CHAPTER).parent)
    nbformat.write(made, tmp_path / CHAPTER)
    assert hashes(tmp_path, but=CHAPTER.name) == copied
    assert [hashes(folder) for folder in originals] == before
    assert (tmp_path / material.RECORD).is_file()
    (total,) = [cell for cell in made.cells if cell.get("source") == "chapter.total()"]
    assert total.outputs[0].data["text/plain"] == f"0 of {POINTS} points"


@pytest.mark.real
def test_a_chapter_waits_for_the_guess_and_goes_on_after_it(tmp_path: Path) -> None:
    lay(tmp_path)
    notebook = read(tmp_path / TOUR)
    place = next(place for place, cell in enumerate(notebook.cells) if GUESS in cell.metadata.get("tags", ()))
    del notebook.cells[place + 1 :]
    shown = nbformat.v4.new_code_cell(
        'chapter.compare(guess=my_guess_ms, measurement=60.0, unit="ms", quantity="step time").summary'
    )
    notebook.cells.append(shown)
    environment = {name: value for name, value in os.environ.items() if name != RECORDED}
    client = NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": tmp_path / "course"}})
    with pytest.raises(CellExecutionError):
        client.execute(env=environment)
    (told,) = notebook.cells[place].outputs
    assert told.traceback == [
        "Your guess of the step time? Write a number of ms in this cell. Then run the cell again."
    ]
    assert shown.execution_count is None
    notebook.cells[place].source = notebook.cells[place].source.replace("...", "30", 1)
    client.execute(env=environment)
    assert "the guess is 50 % below" in shown.outputs[0].data["text/plain"]
    assert [one.guess for one in Record(tmp_path / "course" / FILE).kept()] == [30.0]


@pytest.mark.chromium
@pytest.mark.more
@pytest.mark.timeout(240)
def test_cards_can_be_read_and_links_lead_to_the_lab_and_the_next_chapter(
    page: Any, problems: list[str], lab: Lab
) -> None:
    """In a chapter with saved outputs, which JupyterLab does not trust, in its light and its dark theme."""
    lay(lab.folder / "mine")
    shutil.copy(ROOT / CHAPTER, lab.folder / "mine" / CHAPTER)
    page.goto(lab.address(f"mine/{CHAPTER}"))
    scroll_to(page, f"Chapter 02: 0 of {POINTS} points")
    total = page.locator(f"{CARD}:visible", has_text=f"Chapter 02: 0 of {POINTS} points").last
    total.get_by_text("epoch steps").wait_for()
    assert re.search(r"○\s*epoch steps: 0 of 1 point\b", total.inner_text())
    assert "0.0" not in [text.strip() for text in page.locator(".jp-OutputArea-output:visible").all_inner_texts()]
    for theme in ("light", "dark"):
        if theme == "dark":
            change_theme(page)
        assert page.locator("body").get_attribute("data-jp-theme-light") == str(theme == "light").lower()
        for card in page.locator(f"{CARD}:visible").all():
            assert card.evaluate(LEAST_CONTRAST) >= 4.5, card.inner_text()
            assert card.evaluate("card => getComputedStyle(card).borderLeftWidth") == "6px"
            assert card.evaluate("card => card.scrollWidth <= card.clientWidth")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"cards_{theme}.png")

    page.locator(".jp-Notebook:visible").get_by_role("link", name="Lab 01").last.click()
    page.locator(".jp-Notebook:visible h1", has_text="Lab 01: Many processes, one program").wait_for()
    page.wait_for_url("**/mine/labs/01_processes/lab.ipynb")
    page.locator(".lm-TabBar-tab", has_text=CHAPTER.name).click()
    scroll_to(page, "Next:")
    page.locator(".jp-Notebook:visible").get_by_role("link", name="chapter 03").click()
    page.wait_for_url("**/mine/course/03_stragglers.ipynb")
    assert not problems, problems


def scroll_to(page: Any, words: str) -> None:
    """Scrolls down until these words are drawn: JupyterLab draws what is near the view alone."""
    panel = page.locator(".jp-WindowedPanel-outer:visible").first
    panel.wait_for()
    page.wait_for_function(SCROLLED_TO, arg=[panel.element_handle(), words], polling=50, timeout=DRAWN_MS)
    page.locator(".jp-Notebook:visible").get_by_text(words).last.scroll_into_view_if_needed()


def change_theme(page: Any) -> None:
    """To the dark theme, by JupyterLab's own menu."""
    page.locator("li.lm-MenuBar-item", has_text="Settings").click()
    page.locator("li.lm-Menu-item", has_text=re.compile("^Theme$")).hover()
    page.locator('li.lm-Menu-item[data-command="apputils:change-theme"]', has_text=re.compile(f"^{DARK}$")).click()
    page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
