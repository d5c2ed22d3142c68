"""The figure of lanes and loss in a real browser: it shows what Python computes, plays, and obeys its readers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from distsim.figures import lanes_and_loss
from distsim.figures.lanes_and_loss import LanesAndLoss
from distsim.figures.lanes_scene import LanesScene
from distsim.figures.loss_scene import LossScene
from distsim.figures.paged_axis import PagedAxis
from tests.explorers.test_pictures_in_browser import run_cells
from tests.figures.animation_in_browser import (
    GO_TO,
    PLAYER,
    SECONDS,
    check_frames,
    check_steps,
    opened,
    without_scripts,
)
from tests.figures.test_lanes_and_loss import raced
from tests.jupyterlab import Lab
from tests.page_faults import choose_theme, inaccessible, recorded

pytestmark = [pytest.mark.chromium, pytest.mark.more, pytest.mark.timeout(180)]

SHOWN = """function shown(scene) {
    const all = (selector, ...names) => [...scene.querySelectorAll(selector)].map((part) => [
        part.childElementCount ? "" : part.textContent, ...names.map((name) => part.getAttribute(name)),
    ]);
    return {
        told: all(".told"), cursor: all(".cursor", "x1", "x2"), future: all(".future", "x"),
        marks: all("svg.marks .mark", "x", "y"), ticks: all(".ticks text", "x"), plot: all(".plot", "viewBox"),
    };
}"""
OF_PAGE = f"() => {{ {SHOWN}; return [...document.querySelectorAll('.scene')].map(shown); }}"
OF_PYTHON = f"""svgs => {{ {SHOWN}; return svgs.map((svg) => {{
    const beside = document.createElement("div");
    beside.innerHTML = svg;
    return shown(beside);
}}); }}"""


@pytest.fixture(scope="module")
def figure() -> LanesAndLoss:
    return lanes_and_loss(*raced())


def turned(figure: LanesAndLoss, zoom: int) -> list[LanesScene | LossScene]:
    """The pictures with so many pages."""
    axis = PagedAxis(figure.losses.axis.end_seconds, zoom)
    lanes = [LanesScene(scene.run, axis, scene.moments_seconds) for scene in figure.lanes]
    return [*lanes, LossScene(figure.losses.runs, axis, figure.losses.target)]


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", text)]


def same(shown: Any, wanted: Any) -> bool:
    """Equal, but for the rounding of places."""
    if isinstance(shown, dict):
        return shown.keys() == wanted.keys() and all(same(shown[key], wanted[key]) for key in shown)
    if isinstance(shown, list):
        return len(shown) == len(wanted) and all(map(same, shown, wanted))
    if re.fullmatch(r"[\d. %]+", shown) and re.fullmatch(r"[\d. %]+", wanted):
        return numbers(shown) == pytest.approx(numbers(wanted), abs=0.02)
    return bool(shown == wanted)


def test_the_page_shows_what_python_computes_at_any_moment_on_any_page(
    page: Any, problems: list[str], tmp_path: Path, figure: LanesAndLoss
) -> None:
    opened(page, tmp_path, figure)
    end = figure.losses.axis.end_seconds
    for zoom in (figure.losses.axis.zoom, 4, 32, 1):
        page.locator(".zoom").select_option(str(zoom))
        for share in (figure.still_seconds / end, 0.0, 0.137, 0.5, 0.9999, 0.31, 1.0):
            page.evaluate(GO_TO, share * end)
            shown = page.evaluate(OF_PAGE)
            wanted = page.evaluate(OF_PYTHON, [scene.svg(share * end) for scene in turned(figure, zoom)])
            for one, other in zip(shown, wanted, strict=True):
                assert same(one, other), (zoom, share, one, other)
    assert not problems, problems


def test_runs_are_chosen_and_keys_play_and_step(
    page: Any, problems: list[str], tmp_path: Path, figure: LanesAndLoss
) -> None:
    opened(page, tmp_path, figure)
    asked = recorded(page)
    stage, says = page.locator(".scenes"), page.locator(".says")
    moments = next(scene.moments_seconds for scene in figure.lanes if scene.moments_seconds)
    stage.focus()
    for key, seconds in (
        ("Home", 0.0),
        ("ArrowRight", moments[1]),
        ("ArrowRight", moments[2]),
        ("ArrowLeft", moments[1]),
    ):
        page.keyboard.press(key)
        assert page.evaluate(SECONDS) == pytest.approx(seconds)
    for scene in figure.lanes:
        assert f"{scene.run.name}: {scene.run.told(moments[1])}." in says.inner_text()
    box = page.get_by_role("checkbox", name="asynchronous", exact=True)
    box.focus()
    page.keyboard.press("Space")  # a box does its own work
    assert page.evaluate(f"{PLAYER}.playing") is False
    assert page.locator(".scene:visible").count() == 3
    assert page.locator(".loss:visible").count() == 2
    assert page.locator(".losses .marks .mark:visible").count() == 2
    assert "asynchronous" not in says.inner_text()
    box.check()
    assert page.locator(".scene:visible").count() == 4
    for name in ("synchronous", "first 3", "asynchronous"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    assert page.locator(".scene:visible").count() == 1
    stage.focus()
    page.keyboard.press("Space")
    page.wait_for_function(f"{SECONDS} > {moments[2]}")
    assert page.get_by_role("button", name="Pause").is_visible()
    assert not problems, problems
    assert not asked, asked


def test_readers_who_prefer_less_motion_get_steps(page: Any, tmp_path: Path, figure: LanesAndLoss) -> None:
    page.emulate_media(reduced_motion="reduce")
    opened(page, tmp_path, figure)
    moments = next(scene.moments_seconds for scene in figure.lanes if scene.moments_seconds)
    check_steps(page, moments)


@pytest.mark.parametrize("width", [420, 950])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("workers", [4, 16])
def test_it_fits_and_all_can_use_it(page: Any, tmp_path: Path, workers: int, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    figure = opened(page, tmp_path, lanes_and_loss(*raced(workers)))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    over = """() => [...document.querySelectorAll(".scene text")]
        .map((text) => [text.textContent, text.getBoundingClientRect()])
        .filter(([, box]) => box.left < 0 || box.right > innerWidth).map(([text]) => text)"""
    small = """() => [...document.querySelectorAll(".scene text")]
        .filter((text) => parseFloat(getComputedStyle(text).fontSize) < 11).length"""
    for share in (0.0, 0.3, 1.0):
        page.evaluate(GO_TO, share * figure.losses.axis.end_seconds)
        assert page.evaluate(over) == []
        assert page.evaluate(small) == 0
    # The cursors of all pictures are one line, and the layer above a picture lies on it.
    edges = page.evaluate("[...document.querySelectorAll('.cursor')].map((one) => one.getBoundingClientRect().left)")
    assert max(edges) - min(edges) < 0.5
    for top in page.locator(".scene").all():
        boxes = [layer.bounding_box() for layer in top.locator("> svg").all()]
        assert boxes[0]["x"] == pytest.approx(boxes[1]["x"], abs=0.5)
        assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=0.5)
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert inaccessible(page) == []


def test_without_scripts_the_still_picture_is_shown(browser: Any, tmp_path: Path, figure: LanesAndLoss) -> None:
    with without_scripts(browser, tmp_path, figure) as page:
        assert page.locator(".distsim-lanes").count() == 4
        assert page.locator(".marks .mark").count() == 3


@pytest.mark.alone
def test_16_workers_are_redrawn_20_times_a_second(page: Any, problems: list[str], tmp_path: Path) -> None:
    opened(page, tmp_path, lanes_and_loss(*raced(workers=16, steps=60)))
    check_frames(page)
    assert not problems, problems


CELL = """
from distsim.figures import lanes_and_loss
from distsim.learning.experiments import race

traces = {name: race.trace(name, seed=1, seconds=40.0) for name in ("synchronous", "asynchronous")}
lanes_and_loss(traces, {name: race.learned(trace) for name, trace in traces.items()})
"""


def test_it_plays_in_jupyterlab(page: Any, problems: list[str], lab: Lab) -> None:
    asked = recorded(page)
    run_cells(page, lab, CELL)
    stage = page.locator(".distsim-lanes-and-loss[data-plays] .scenes")
    stage.wait_for()
    stage.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    page.wait_for_function(f"{PLAYER}.playing && {SECONDS} > 0")
    choose_theme(page, "JupyterLab Dark")
    page.wait_for_function(
        "getComputedStyle(document.querySelector('.distsim-lanes .future')).fill === 'rgb(18, 18, 18)'"
    )
    choose_theme(page, "JupyterLab Light")
    assert not problems, problems
    assert not asked, asked
