"""In a real browser: a picture is the newest whatever happened meanwhile, and plotly.js comes once."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.notebooks import notebook
from tests.explorers.drives import control
from tests.jupyterlab import HAS_RUN, Lab, run_all
from tests.page_faults import choose_theme, inaccessible

pytestmark = [pytest.mark.chromium, pytest.mark.more, pytest.mark.timeout(240)]

ROUNDS = 3  # of an animation
# Notes each frame of an animation, and counts them.
WATCH = """() => {
    const plot = document.querySelector(".distsim-explorer .js-plotly-plot");
    window.distsimFrames = [];
    plot.on("plotly_animatingframe", ({name}) => distsimFrames.push(name));
}"""
PLAYED = "count => distsimFrames.length >= count"
# The frames of an animation in the time that some rounds of it take.
LATER = """async rounds => {
    const before = distsimFrames.length;
    await new Promise(over => setTimeout(over, rounds * 1000));
    return distsimFrames.slice(before);
}"""
ACTIVE = "() => document.querySelector('.distsim-explorer .js-plotly-plot').layout.sliders[0].active"
BOXES = "() => document.querySelector('.distsim-explorer .js-plotly-plot').layout.shapes.length"
HIDDEN = "hidden => { document.querySelector('.distsim-picture').parentElement.style.display = hidden ? 'none' : ''; }"

WIDTHS = "[...document.querySelectorAll('.jp-OutputArea-output')].map(shown => shown.scrollWidth - shown.clientWidth)"
SCROLLED = "() => document.querySelector('.distsim-frame').scrollLeft > 0"


def run_cells(page: Any, lab: Lab, *cells: str) -> None:
    """Opens and runs a notebook of these cells."""
    made = notebook(EXPLORERS["collectives"])
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    file = f"pictures-{len(list(lab.folder.iterdir()))}.ipynb"
    nbformat.write(made, lab.folder / file)
    run_all(page, lab, file)
    page.wait_for_function(HAS_RUN)


def open_explorer(page: Any, lab: Lab, *names: str) -> None:
    """Opens explorers, and returns when each is drawn."""
    run_cells(page, lab, *(f"from distsim.explorers.{name} import explorer\nexplorer()" for name in names))
    page.locator(".distsim-explorer .js-plotly-plot .main-svg").nth(3 * len(names) - 1).wait_for(state="attached")


def test_an_animation_ends_when_its_picture_is_replaced(page: Any, problems: list[str], lab: Lab) -> None:
    open_explorer(page, lab, "collectives")
    explorer = page.locator(".distsim-explorer")
    page.evaluate(WATCH)
    explorer.locator(".updatemenu-button", has_text="Play").click()
    page.wait_for_function(PLAYED, arg=2)
    control(explorer, "workers").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => ({BOXES})() === 5")
    page.wait_for_function("() => document.querySelector('.distsim-picture').ariaBusy === 'false'")
    assert page.evaluate(LATER, ROUNDS) == []
    assert page.evaluate(ACTIVE) == 0
    before = page.evaluate("distsimFrames.length")
    explorer.locator(".updatemenu-button", has_text="Play").click()
    page.wait_for_function(PLAYED, arg=before + 2)
    assert page.evaluate("distsimFrames")[before:][:2] == ["start", "round 0"]
    assert not problems, problems


def test_a_picture_that_was_hidden_is_the_newest_when_it_is_shown(page: Any, problems: list[str], lab: Lab) -> None:
    open_explorer(page, lab, "collectives")
    explorer = page.locator(".distsim-explorer")
    page.evaluate(HIDDEN, True)
    control(explorer, "workers").focus()
    page.keyboard.press("ArrowRight")
    explorer.locator(".distsim-changed", has_text="workers from 4 to 5").wait_for()
    assert page.evaluate(BOXES) == 4
    page.evaluate(HIDDEN, False)
    page.wait_for_function(f"() => ({BOXES})() === 5")
    assert not problems, problems


# A figure of ours, a reader's own dark figure, and one that JupyterLab shows as the image stored with it.
FIGURES = """
import plotly.graph_objects as go
from IPython.display import display
from distsim.explorers.catalogue import EXPLORERS
from distsim.figures.captioned import PLOTLY_MIME

ours = EXPLORERS["collectives"].explore({})
own = go.Figure(go.Scatter(x=[1, 2], y=[1, 2]), {"template": "plotly_dark"})
pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
display(ours)
display({PLOTLY_MIME: own.to_plotly_json()}, raw=True)
display({PLOTLY_MIME: own.to_plotly_json(), "image/png": pixel}, raw=True)
"""
SHOWN = ".jp-RenderedPlotly > :is(.plot-img[src], .plot-container)"
FILTERS = f"""() => [...document.querySelectorAll("{SHOWN}")].filter(shown => shown.clientHeight)
    .map(shown => getComputedStyle(shown.querySelector(".svg-container") ?? shown).filter)"""


def test_figures_of_the_readers_own_keep_their_colours_in_the_dark(page: Any, lab: Lab) -> None:
    run_cells(page, lab, FIGURES)
    page.locator(".jp-RenderedPlotly").nth(2).wait_for()
    page.wait_for_function(f"() => ({FILTERS})().length === 3")
    assert page.evaluate(FILTERS) == ["none"] * 3
    choose_theme(page, "JupyterLab Dark")
    page.wait_for_function(f"() => ({FILTERS})()[0]?.startsWith('invert')")
    assert page.evaluate(FILTERS)[1:] == ["none"] * 2


def test_plotly_comes_once_for_all_explorers_and_redraws_of_a_page(page: Any, lab: Lab) -> None:
    asked: list[str] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framesent", lambda sent: asked.append("ask") if '"ask"' in str(sent) else None),
    )
    open_explorer(page, lab, "collectives", "backup_workers")
    explorer = page.locator(".distsim-explorer").first
    for boxes in (5, 6):
        control(explorer, "workers").first.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"() => ({BOXES})() === {boxes}")
    assert len(asked) == 1


def test_a_picture_wider_than_its_place_scrolls_in_its_frame_alone(page: Any, problems: list[str], lab: Lab) -> None:
    page.set_viewport_size({"width": 1200, "height": 1000})
    open_explorer(page, lab, "your_cluster")
    page.locator(".distsim-picture[tabindex='0']").focus()
    assert max(page.evaluate(WIDTHS)) <= 1
    page.keyboard.press("ArrowRight")
    page.wait_for_function(SCROLLED)
    assert inaccessible(page, ".distsim-explorer") == []
    assert not problems, problems
