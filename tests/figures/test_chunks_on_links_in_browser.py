"""The figure of chunks on links in a real browser: it shows what Python computes, plays, and obeys its readers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distsim.collectives import Schedule, halving_doubling, parameter_server, ring, tree
from distsim.figures.chunk_scene import Scene
from distsim.figures.chunks_on_links import ChunksOnLinks
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
from tests.figures.test_chunks_on_links import drawn
from tests.jupyterlab import HAS_RUN, Lab
from tests.page_faults import choose_theme, inaccessible, recorded
from tests.test_chunk_movements import WRONG, direct

pytestmark = [pytest.mark.chromium, pytest.mark.more, pytest.mark.timeout(180)]

# What a scene shows. The order of lines and of packets means nothing.
SHOWN = """function shown(scene) {
    const all = (selector) => [...scene.querySelectorAll(selector)];
    const numbers = (part, ...names) => names.map((name) => Number(part.getAttribute(name)));
    const place = (part) => (part.style.transform || part.getAttribute("transform")).match(/-?[\\d.]+/g).map(Number);
    return {
        levels: all(".level").map((part) => numbers(part, "x", "y", "width", "height")),
        cells: all(".cell").map((part) => part.getAttribute("class")),
        texts: all(".number").map((part) => part.textContent),
        bars: all(".bars rect").map((part) => numbers(part, "y", "height")),
        flows: all(".flow").map((part) => numbers(part, "x1", "y1", "x2", "y2", "stroke-width")),
        packets: all(".packet").map((part) => [
            ...place(part), ...[...part.children].map((one) => one.getAttribute("class")),
        ]),
        most: all(".most").map((part) => [part.textContent, ...numbers(part, "x", "y")]),
        told: all(".told").map((part) => [part.textContent, part.getAttribute("class")]),
    };
}"""
PIXELS = 0.15  # both round to a hundredth or a tenth
OF_PAGE = f"() => {{ {SHOWN}; return [...document.querySelectorAll('.scene')].map(shown); }}"
OF_PYTHON = f"""svgs => {{ {SHOWN}; return svgs.map((svg) => {{
    document.querySelector("#beside")?.remove();
    document.body.insertAdjacentHTML("beforeend", `<div id="beside">${{svg}}</div>`);
    const found = shown(document.querySelector("#beside"));
    document.querySelector("#beside").remove();
    return found;
}}); }}"""


def same(one: Any, other: Any) -> bool:
    """Equal, but for the rounding of numbers."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other if isinstance(one, str) else abs(one - other) <= PIXELS


def differences(shown: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[str]:
    """What the scenes of a page show, and Python does not, or the other way round."""
    found = []
    assert len(shown) == len(wanted)
    for scene, own in zip(shown, wanted, strict=True):
        for part, values in own.items():
            if part not in ("flows", "packets"):
                found += [] if same(scene[part], values) else [f"{part}: {scene[part]}, not {values}"]
                continue
            left = list(scene[part])
            for value in values:
                match = next((one for one in left if same(one, value)), None)
                if match is None:
                    found.append(f"{part}: {value} is not in {left}")
                else:
                    left.remove(match)
            found += [f"{part}: {value} is too much" for value in left]
    return found


def ends(figure: ChunksOnLinks) -> list[float]:
    return [scene.calls.end_seconds for scene in figure.scenes]


@pytest.mark.parametrize(
    "schedules",
    [
        (ring(4), parameter_server(4)), (ring(16), parameter_server(16, 4)), (halving_doubling(6), tree(6)),
        (direct(3), parameter_server(3, 3, colocated=True)), (WRONG["sums are added up"], replace(ring(4), rounds=())),
        (WRONG["a round is missing"],), (ring(1),),
    ],
)  # fmt: skip
def test_the_page_shows_what_python_computes_at_any_moment(
    page: Any, problems: list[str], tmp_path: Path, schedules: tuple[Schedule, ...]
) -> None:
    figure = opened(page, tmp_path, drawn(*schedules))
    first, last = figure.scenes[0].calls.moments_seconds, max(ends(figure))
    shares = [0.0, 0.137, 0.5, 0.31, 1.0, 0.02]  # there and back
    moments = [figure.still_seconds, *(share * last for share in shares), *first[1:4], 0.4 * first[-1]]
    for place, seconds in enumerate(moments):
        if place:
            page.evaluate(GO_TO, seconds)
        wanted = page.evaluate(OF_PYTHON, [scene.svg(seconds) for scene in figure.scenes])
        assert differences(page.evaluate(OF_PAGE), wanted) == [], seconds
    assert not problems, problems


def test_space_plays_arrows_step_and_the_text_tells(page: Any, problems: list[str], tmp_path: Path) -> None:
    figure = opened(page, tmp_path, drawn(ring(4), parameter_server(4)))
    moments = figure.scenes[0].calls.moments_seconds
    asked = recorded(page)
    says, stage = page.locator(".says"), page.locator(".scenes")
    assert page.evaluate(f"{PLAYER}.playing") is False
    stage.focus()
    for key, seconds in (
        ("Home", 0.0),
        ("ArrowRight", moments[1]),
        ("ArrowRight", moments[2]),
        ("ArrowLeft", moments[1]),
    ):
        page.keyboard.press(key)
        assert page.evaluate(SECONDS) == pytest.approx(seconds)
        assert f"ring: {figure.scenes[0].calls.complete_at(seconds)} of 16 sums complete" in says.inner_text()
    assert "chunk 3 from rank 0 to 1" in says.inner_text()
    page.keyboard.press("End")
    assert page.evaluate(SECONDS) == pytest.approx(max(ends(figure)))
    assert "done after" in says.inner_text()
    page.keyboard.press("Space")  # from the end it begins anew
    page.wait_for_function(f"0 < {SECONDS} && {SECONDS} < {moments[1]}")
    assert page.get_by_role("button", name="Pause").is_visible()
    assert says.get_attribute("aria-live") == "off"
    page.keyboard.press("Space")
    stays = page.evaluate(SECONDS)
    page.wait_for_timeout(300)
    assert page.evaluate(SECONDS) == stays
    assert says.get_attribute("aria-live") == "polite"
    page.get_by_role("button", name="Step", exact=True).press("Space")  # a button does its own work
    assert page.evaluate(f"{PLAYER}.playing") is False
    assert page.evaluate(SECONDS) > stays
    slider = page.get_by_label("time")
    slider.press("ArrowLeft")
    assert page.evaluate(SECONDS) == pytest.approx(max(one for one in moments if one <= stays), abs=1e-9)
    assert slider.get_attribute("aria-valuetext").endswith(" of 410 ms")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert not problems, problems
    assert not asked, asked


def test_speed_is_that_which_is_chosen_and_the_slider_moves(page: Any, tmp_path: Path) -> None:
    figure = opened(page, tmp_path, drawn(ring(4), parameter_server(4)))
    page.get_by_label("speed").select_option("16")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(f"{PLAYER}.seconds >= {PLAYER}.content.end", timeout=20_000)
    page.get_by_role("button", name="Play").wait_for()
    assert page.locator(".scene .told.done").count() == 2
    page.get_by_label("time").fill("500")
    assert page.evaluate(SECONDS) == pytest.approx(max(ends(figure)) / 2)


def test_readers_who_prefer_less_motion_get_steps(page: Any, tmp_path: Path) -> None:
    page.emulate_media(reduced_motion="reduce")
    figure = opened(page, tmp_path, drawn(ring(4), parameter_server(4)))
    moments = sorted({one for scene in figure.scenes for one in scene.calls.moments_seconds})
    check_steps(page, moments)
    scene: Scene = figure.scenes[0]
    page.evaluate(GO_TO, moments[1])
    one, _ = scene.calls.under_way(moments[1])[0]
    page.evaluate(GO_TO, (moments[1] + 2 * moments[2]) / 3)  # a packet stands in the middle of its way at any moment
    places = page.evaluate(OF_PAGE)[0]["packets"]
    (middle,) = page.evaluate(OF_PYTHON, [scene.svg((one.start_seconds + one.end_seconds) / 2)])
    assert same(places, middle["packets"])


@pytest.mark.parametrize("width", [420, 760, 950])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("workers", [4, 16])
def test_it_fits_and_all_can_use_it(page: Any, tmp_path: Path, workers: int, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, tmp_path, drawn(ring(workers), parameter_server(workers)))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    first, second = (scene.bounding_box() for scene in page.locator(".scene").all())
    assert (first["y"] == second["y"]) is (width >= 760)
    assert first["width"] > 350
    letters = """() => [...document.querySelectorAll(".scene text")].filter((text) => text.textContent).map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.clientWidth / 460)"""
    assert min(page.evaluate(letters)) >= 9.5
    over = """() => [...document.querySelectorAll(".scene")].flatMap((scene) => {
        const { left, right } = scene.getBoundingClientRect();
        return [...scene.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()])
            .filter(([, box]) => box.left < left - 1 || box.right > right + 1).map(([text]) => text);
    })"""
    for share in (0.0, 0.03, 0.5, 1.0):
        page.evaluate(f"share => {PLAYER}.goTo(share * {PLAYER}.content.end)", share)
        assert page.evaluate(over) == []
    paper = page.evaluate("getComputedStyle(document.querySelector('.scene .paper')).fill")
    assert paper == ("rgb(18, 18, 18)" if scheme == "dark" else "rgb(255, 255, 255)")
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert inaccessible(page) == []


def test_without_scripts_the_still_picture_is_shown(browser: Any, tmp_path: Path) -> None:
    figure = drawn(ring(4), parameter_server(4))
    with without_scripts(browser, tmp_path, figure) as page:
        assert page.locator(".distsim-scene").count() == 2
        assert page.locator(".packet").count() == 8


@pytest.mark.alone
def test_16_ranks_are_redrawn_20_times_a_second(page: Any, problems: list[str], tmp_path: Path) -> None:
    opened(page, tmp_path, drawn(ring(16), parameter_server(16)))
    check_frames(page)
    assert not problems, problems


CELL = """
from distsim.chunk_movements import ChunkMovements
from distsim.cluster import Cluster
from distsim.collectives import parameter_server, ring
from distsim.figures import chunks_on_links

cluster = Cluster(workers=4, bandwidth="10 Gbit/s", latency="50 us")
chunks_on_links([ChunkMovements.simulated(way, cluster, "64 MB") for way in (ring(4), parameter_server(4))])
"""


def test_it_plays_in_jupyterlab_also_after_restart_and_clear(page: Any, problems: list[str], lab: Lab) -> None:
    asked = recorded(page)
    run_cells(page, lab, CELL)
    stage = page.locator(".distsim-chunks-on-links[data-plays] .scenes")
    stage.wait_for()
    stage.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"{PLAYER}.moments[1] === {SECONDS}")
    page.keyboard.press("Space")
    page.wait_for_function(f"{SECONDS} > {PLAYER}.moments[1]")
    choose_theme(page, "JupyterLab Dark")
    page.wait_for_function("getComputedStyle(document.querySelector('.scene .paper')).fill === 'rgb(18, 18, 18)'")
    choose_theme(page, "JupyterLab Light")
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("Restart Kernel and Clear Outputs")).click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.locator(".distsim-chunks-on-links").wait_for(state="detached")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=re.compile("^Run All Cells")).click()
    stage.wait_for()
    page.wait_for_function(HAS_RUN)
    stage.focus()
    page.keyboard.press("Space")
    page.wait_for_function(f"{PLAYER}.playing && {SECONDS} > 0")
    assert not problems, problems
    assert not asked, asked
