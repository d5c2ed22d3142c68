"""Each chapter in a real browser: JupyterLab runs all of it, its figures are drawn, its explorers move."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.course import Chapter
from distsim.course.folder import number_of
from distsim.explorers.notebooks import METADATA
from distsim.figures.captioned import PLOTLY_MIME
from distsim.grading.metadata import without_outputs
from tests.explorers.conftest import SCREENSHOTS
from tests.explorers.drives import DATA, drive_of, press
from tests.jupyterlab import Lab, run_all
from tests.page_faults import in_the_dark, inaccessible, recorded, sending

COURSE = Path(__file__).parents[2] / "course"
CHAPTERS = sorted(COURSE.glob("[0-9][0-9]*_*.ipynb"))
EXPLORER = re.compile(r"from distsim\.explorers\.(\w+) import explorer\b")
RUN_MILLISECONDS = 240_000  # the real runs of a chapter on a busy machine
# Nothing waits any more: all have run, or one has failed and those behind it were given up.
HAS_ENDED = r"""() => {
    const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].map(prompt => prompt.textContent);
    const indicator = document.querySelector(".jp-Notebook-ExecutionIndicator");
    return prompts.some(text => /\[\d+\]/.test(text)) && !prompts.some(text => text.includes("*"))
        && indicator.dataset.status === "idle";
}"""
ERRORS = """[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"],
    .jupyter-widgets-error, .jp-mod-error"""
# The figure is replaced as a whole, so it is looked up anew.
DIFFERS = f"""([explorer, before]) => {{
    const plot = explorer.querySelector(".js-plotly-plot");
    return plot && plot.data && ({DATA})(plot) !== before;
}}"""
# What is wrong with a drawing: nothing drawn, or words that its edge cuts off.
FAULTS = """plot => {
    const frame = plot.getBoundingClientRect();
    if (frame.width < 300 || frame.height < 100) return [`it is ${frame.width} x ${frame.height} pixels`];
    const marks = [...plot.querySelectorAll(".main-svg .trace, .main-svg .point, canvas")].filter(mark => {
        const box = mark.getBoundingClientRect();
        return box.width + box.height > 0;
    });
    if (!marks.length) return ["nothing is drawn"];
    return [...plot.querySelectorAll(".main-svg text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
            || box.bottom > frame.bottom + 1);
    }).map(text => `"${text.textContent}" reaches beyond its edge`);
}"""
# Of work that is over; an explorer has its own, for the next.
BARS = ".jp-OutputArea-output:not(:has(.distsim-explorer)) .widget-hprogress:visible"
TOO_WIDE = """() => [...document.querySelectorAll(".jp-Cell .jp-RenderedHTMLCommon, .jp-OutputArea-output")]
    .filter(shown => shown.scrollWidth > shown.clientWidth + 1)
    .map(shown => `${shown.innerText.slice(0, 80)} ... is ${shown.scrollWidth} wide in ${shown.clientWidth} pixels`)"""
# JupyterLab leaves out what is not in view: nothing of it has a size or words then.
ALL_LAID_OUT = "* { content-visibility: visible !important; }"
PICTURE_PIXELS = 1600
OURS = (".jp-RenderedMarkdown", ".jp-OutputArea-output")  # what a chapter brings to JupyterLab's page

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(420)]
SAYS_MORE = "([box, told]) => box.querySelector('.distsim-changed').innerText !== told"


@pytest.mark.parametrize(
    "path",
    [CHAPTERS[0], *(pytest.param(path, marks=pytest.mark.thorough) for path in CHAPTERS[1:])],
    ids=lambda path: path.stem,
)
def test_all_of_it_runs_is_drawn_and_moves(page: Any, problems: list[str], lab: Lab, path: Path) -> None:
    notebook, asked = nbformat.read(path, as_version=4), recorded(page)
    run(page, lab, path.stem, notebook)
    take_pictures(page, path.stem)
    check(page, notebook)
    check_exercises(page, notebook, number_of(path))
    check_access(page)
    assert [*problems, *asked] == []


BROKEN = {
    "error": ("1 / 0", "ZeroDivisionError"),
    "warning": ("import warnings\n\nwarnings.warn('careful')", "careful"),
    "bar": ("import ipywidgets\n\nipywidgets.HBox([ipywidgets.IntProgress(3)])", "progress bars are left"),
    "nothing": ("import plotly.graph_objects as go\n\ngo.Figure()", "nothing is drawn"),
    "cut": (
        "import plotly.graph_objects as go\n\n"
        "go.Figure(go.Bar(y=[1]), {'annotations': [{'text': 'far away', 'xref': 'paper', 'x': 1.5}]})",
        "far away.* reaches beyond its edge",
    ),
    "missing": ("print('no figure')", "Timeout"),
    "dead": (
        "from distsim.explorers.ring_or_server import explorer\n\n"
        "frame = explorer()\n_ = [control.unobserve_all() for control in frame.controls.values()]\nframe",
        "Timeout",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_chapter_is_told(page: Any, lab: Lab, name: str) -> None:
    source, words = BROKEN[name]
    cell = nbformat.v4.new_code_cell(source)
    cell.outputs = [nbformat.v4.new_output("display_data", {PLOTLY_MIME: {}})]
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata=METADATA)
    run(page, lab, f"broken_{name}", notebook)
    page.set_default_timeout(5_000)
    playwright = pytest.importorskip("playwright.sync_api")
    with pytest.raises((AssertionError, playwright.TimeoutError), match=words):
        check(page, notebook)


def run(page: Any, lab: Lab, name: str, notebook: Any) -> None:
    """Runs all of a copy, without outputs of before, in a copy of the course."""
    course = lab.folder / name / "course"
    shutil.copytree(COURSE, course, ignore=shutil.ignore_patterns("*.ipynb", "__pycache__"))
    nbformat.write(without_outputs(deepcopy(notebook)), course / f"{name}.ipynb")
    run_all(page, lab, f"{name}/course/{name}.ipynb")
    page.wait_for_function(HAS_ENDED, timeout=RUN_MILLISECONDS)
    page.add_style_tag(content=ALL_LAID_OUT)


def check(page: Any, notebook: Any) -> None:
    """All that a chapter shows, but its exercises."""
    check_cells(page, notebook)
    check_figures(page, notebook)
    check_explorers(page, notebook)


def check_cells(page: Any, notebook: Any) -> None:
    """Every cell has run, in order, none tells of an error, and none leaves a progress bar behind."""
    errors = page.locator(ERRORS)
    assert not errors.count(), errors.all_inner_texts()
    assert not page.locator(BARS).count(), "progress bars are left"
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    expected = [f"[{number}]:" for number in range(1, 1 + sum(cell.cell_type == "code" for cell in notebook.cells))]
    assert prompts == expected


def check_figures(page: Any, notebook: Any) -> None:
    """Each figure of the saved chapter stands under its cell, with something in it that can be read to its end."""
    drawn = [
        (cell, index, sum(PLOTLY_MIME in output.get("data", {}) for output in cell.get("outputs", [])))
        for index, cell in enumerate(notebook.cells)
    ]
    assert sum(count for *_, count in drawn), "the saved chapter has no figure"
    for cell, index, count in drawn:
        if not count:
            continue
        shown = page.locator(".jp-Notebook .jp-Cell").nth(index)
        shown.scroll_into_view_if_needed()
        plots = shown.locator(".js-plotly-plot")
        plots.nth(count - 1).locator(".main-svg").first.wait_for(state="visible")
        assert plots.count() == count, cell.source
        for plot in plots.all():
            assert plot.evaluate(FAULTS) == [], cell.source
    assert page.evaluate(TOO_WIDE) == []


def check_explorers(page: Any, notebook: Any) -> None:
    """A key on a control changes the figure and the sentence above it, in each explorer of the chapter."""
    names = [name for cell in notebook.cells if cell.cell_type == "code" for name in EXPLORER.findall(cell.source)]
    explorers = page.locator(".distsim-explorer")
    assert explorers.count() == len(names)
    for name, explorer in zip(names, explorers.all(), strict=True):
        explorer.scroll_into_view_if_needed()
        before = explorer.locator(".js-plotly-plot").first.evaluate(DATA)
        told = explorer.locator(".distsim-changed").inner_text()
        explorer.locator("input:visible, select:visible").first.focus()
        press(page, explorer, drive_of(name).move)
        page.wait_for_function(DIFFERS, arg=[explorer.element_handle(), before])
        page.wait_for_function(SAYS_MORE, arg=[explorer.element_handle(), told])
        assert not explorer.get_by_role("alert").count()


def check_exercises(page: Any, notebook: Any, number: str) -> None:
    """Unanswered, each shows a card without points, and its hint; the last card is the sum."""
    exercises = Chapter(number, COURSE).exercises
    shown = page.locator(".jp-Notebook .jp-Cell")
    checked = {
        cell.metadata.nbgrader["grade_id"]: index
        for index, cell in enumerate(notebook.cells)
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert len(checked) == len(exercises)
    for exercise, index in zip(exercises.values(), checked.values(), strict=True):
        told = " ".join(shown.nth(index).locator(".jp-OutputArea").inner_text().split())
        assert f"○{exercise.name.replace('_', ' ')}: 0 of {exercise.points:g} point" in told
        assert " ".join(exercise.hint.replace("`", "").split()) in told
    points = sum(exercise.points for exercise in exercises.values())
    assert shown.locator(".distsim-card").last.inner_text().startswith(f"Chapter {number}: 0 of {points:g} points")


def check_access(page: Any) -> None:
    """Text and outputs have no serious finding of axe-core, in light and dark, and figures cannot be sent away.

    JupyterLab's own frame and editors are not ours.
    """
    assert sending(page) == []
    assert inaccessible(page, *OURS) == []
    with in_the_dark(page):
        assert inaccessible(page, *OURS) == []


def take_pictures(page: Any, name: str) -> None:
    """The whole chapter in pieces, to be looked at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for number in pieces(page):
        page.screenshot(path=SCREENSHOTS / f"{name}_{number}.png")


def pieces(page: Any) -> Iterator[int]:
    """Scrolls through the notebook, and gives the number of each place."""
    page.set_viewport_size({"width": 1400, "height": PICTURE_PIXELS})
    scroller = page.locator(".jp-WindowedPanel-outer").first
    scroller.evaluate("panel => panel.scrollTop = 0")
    number = 0
    while True:
        yield number
        moved = scroller.evaluate(
            """panel => {
                const before = panel.scrollTop;
                panel.scrollTop += panel.clientHeight - 40;
                return panel.scrollTop - before;
            }"""
        )
        if moved < 1:
            return
        number += 1
