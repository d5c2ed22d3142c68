"""Explorers of the site in a real browser: pages of few settings with the site's own scripts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
from plotly.offline import get_plotlyjs

from distsim.course.site.build import STATIC
from distsim.course.site.moving import MOVING, Moving, explored
from distsim.explorers.catalogue import EXPLORERS, Move
from tests.page_faults import inaccessible

pytestmark = [pytest.mark.chromium, pytest.mark.more, pytest.mark.timeout(120)]

SCRIPTS = ("plotly.min.js", "figures.js", "explorer.js")
# The texts that the figure draws: the numbers of parts of each chunk.
TEXTS = "() => JSON.stringify(document.querySelector('.distsim-plot').data.map(trace => trace.text ?? null))"
WAITED = "milliseconds => new Promise(over => setTimeout(over, milliseconds))"
ROUND_MILLISECONDS = 900


def opened(page: Any, folder: Path, name: str, *moves: Move) -> tuple[Moving, list[dict[str, Any]]]:
    """A page of this explorer that moves by these controls alone; the results of its settings."""
    moving = Moving.of(replace(EXPLORERS[name], moves=moves))
    found = [explored(moving.entry, values) for values in moving.settings()]
    for file in ("figures.js", "explorer.js", "site.css"):
        shutil.copy(STATIC / file, folder)
    (folder / "plotly.min.js").write_text(get_plotlyjs(), "utf-8")
    scripts = "".join(f'<script src="{file}" defer></script>' for file in SCRIPTS)
    head = f'<meta charset="utf-8"><title>{escape(name)}</title><link rel="stylesheet" href="site.css">{scripts}'
    (folder / "page.html").write_text(
        f"<!doctype html><html lang=en>{head}<h1>A page</h1>{moving.html(found)}", "utf-8"
    )
    page.goto((folder / "page.html").as_uri())
    page.locator(".distsim-plot .main-svg").first.wait_for()
    return moving, found


def texts(found: dict[str, Any], number: int) -> str:
    """As `TEXTS` reads them after so many rounds."""
    drawn = [trace.get("text") for trace in found["figure"]["data"]]
    frame = found["figure"]["frames"][number]
    for place, changes in zip(frame["traces"], frame["data"], strict=True):
        drawn[place] = changes.get("text", drawn[place])
    return json.dumps(drawn, separators=(",", ":"), ensure_ascii=False)


def test_a_slider_leads_through_the_rounds_and_play_moves_it(page: Any, problems: list[str], tmp_path: Path) -> None:
    moving, found = opened(page, tmp_path, "collectives", Move("workers", (3, 4, 5)))
    assert moving.frames is not None
    assert moving.frames.control.label not in moving.others
    rounds, workers = page.get_by_label("rounds done"), page.get_by_label("workers")

    def shows(setting: int, number: int) -> None:
        page.wait_for_function(f"wanted => ({TEXTS})() === wanted", arg=texts(found[setting], number))
        assert rounds.input_value() == rounds.get_attribute("aria-valuetext") == str(number)
        assert rounds.get_attribute("max") == str(len(found[setting]["figure"]["frames"]) - 1)

    shows(1, 0)
    rounds.focus()
    for number in (1, 2):
        page.keyboard.press("ArrowRight")
        shows(1, number)
    workers.focus()
    page.keyboard.press("ArrowRight")
    shows(2, 2)
    rounds.focus()
    page.keyboard.press("End")
    shows(2, 8)
    workers.focus()
    page.keyboard.press("Home")
    shows(0, 4)
    page.get_by_role("button", name="first values").click()
    shows(1, 0)

    assert page.locator(".distsim-plot .slider-container").count() == 0
    page.locator(".updatemenu-button", has_text="Play").click()
    page.wait_for_function("() => document.querySelector('.distsim-frames').value === '2'")
    workers.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.distsim-plot').layout.shapes.length === 5")
    stays = int(rounds.input_value())
    page.evaluate(WAITED, 3 * ROUND_MILLISECONDS)
    shows(2, stays)
    assert not problems, problems


def test_the_old_result_is_dimmed_beside_a_refusal(page: Any, problems: list[str], tmp_path: Path) -> None:
    opened(page, tmp_path, "race", Move("first", (4, 12)))
    page.get_by_label("gradients an update waits for").focus()
    for key, opacity in (("End", 0.7), ("Home", 1.0)):
        page.keyboard.press(key)
        page.locator(f".{MOVING}{'.distsim-refused' if key == 'End' else ':not(.distsim-refused)'}").wait_for()
        for part in ("figure", "numbers"):
            style = page.locator(f".{MOVING} .distsim-{part}").evaluate("part => getComputedStyle(part).opacity")
            assert float(style) == pytest.approx(opacity)
    assert not problems, problems
    page.keyboard.press("End")
    page.locator(".distsim-refused").wait_for()
    assert inaccessible(page) == []  # axe-core itself asks for style sheets, which a page on a disk may not


def test_on_a_phone_a_figure_keeps_the_width_that_it_needs(page: Any, problems: list[str], tmp_path: Path) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    _, (found,) = opened(page, tmp_path, "collectives", Move("workers", (4,)))
    least = found["figure"]["layout"]["meta"]["leastWidth"]
    assert least > 420
    assert page.locator(".distsim-plot .main-svg").first.bounding_box()["width"] > least - 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert not problems, problems


SIZES = """() => {
    const plot = document.querySelector(".distsim-plot"), {width, height} = plot._fullLayout;
    return [plot.clientWidth, plot.clientHeight, width, height];
}"""
FILLS = f"() => {{ const [width, , drawn] = ({SIZES})(); return Math.abs(width - drawn) <= 1; }}"


@pytest.mark.parametrize("name", ["collectives", "backup_workers"])
def test_a_figure_keeps_its_height_when_the_phone_is_turned(page: Any, tmp_path: Path, name: str) -> None:
    """After a move of a control, the place of the figure once shrank to nothing."""
    mover = Moving.of(EXPLORERS[name]).movers[0]
    page.set_viewport_size({"width": 700, "height": 1000})
    opened(page, tmp_path, name, Move(mover.control.field, mover.stops[mover.start - 1 : mover.start + 2]))
    for key, width, tall in (("ArrowRight", 1000, 700), ("ArrowLeft", 700, 1000)) * 2:
        before = page.locator(".distsim-summary").text_content()
        page.get_by_label(mover.control.label, exact=True).press(key)
        page.wait_for_function(
            "before => document.querySelector('.distsim-summary').textContent !== before", arg=before
        )
        page.wait_for_function(FILLS)
        page.set_viewport_size({"width": width, "height": tall})
        page.wait_for_function(FILLS)
        _, place, _, drawn = page.evaluate(SIZES)
        assert place == drawn > 200
