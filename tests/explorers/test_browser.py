"""In a real browser: every explorer in JupyterLab by keyboard alone, one as a Voilà page, and the report offline."""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.comparison import compare
from distsim.examples import example
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.inputs import Steps
from distsim.explorers.notebooks import notebook
from distsim.figures.report import html
from distsim.simulation import simulate
from tests.explorers.browser_bench import slowness
from tests.explorers.drives import DATA, Move, control, drive_of, press, tab_to
from tests.jupyterlab import HAS_RUN, Lab, run_all
from tests.page_faults import IS_DARK, in_the_dark, inaccessible, recorded, sending

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "out" / "screenshots"
DRAWN = f"""() => {{
    const plot = document.querySelector(".distsim-explorer .js-plotly-plot");
    return plot && plot.data ? ({DATA})(plot) : null;
}}"""
DIFFERS = f"before => {{ const drawn = ({DRAWN})(); return drawn !== null && drawn !== before; }}"
# Milliseconds from the next key to the first picture that differs; asked for before the key, read after it.
WATCH = f"""() => {{
    const drawn = {DRAWN}, before = drawn();
    window.distsimTook = new Promise(tell => {{
        document.addEventListener("keydown", () => {{
            const start = performance.now();
            const look = () => {{
                const now = drawn();
                if (now !== null && now !== before) tell(performance.now() - start);
                else requestAnimationFrame(look);
            }};
            requestAnimationFrame(look);
        }}, {{once: true, capture: true}});
    }});
}}"""
TOOK = "() => window.distsimTook"
# Voilà's page asks for the end of its kernel as it is left, without the cookie's token: `distsim course` has idle
# kernels ended instead.
VOILAS_OWN = "/voila/api/shutdown/"
REAL_RUN_MILLISECONDS = 120_000
PROMPT_SECONDS = 3.0  # from the click until the phases of the run are shown, on a busy machine
MOVES_TIMED, MOST_SECONDS = 5, 0.4  # from a key to the figure, on a calm machine

# Counts the drawings from now on, and notes when the last key came and when the last drawing ended.
COUNT = """() => {
    const picture = document.querySelector(".distsim-picture");
    const seen = window.distsimSeen = {drawn: 0, key: Infinity, ended: 0};
    document.addEventListener("keydown", () => { seen.key = performance.now(); }, true);
    new MutationObserver(() => {
        if (picture.getAttribute("aria-busy") !== "false") return;
        seen.drawn += 1;
        seen.ended = performance.now();
    }).observe(picture, {attributeFilter: ["aria-busy"]});
}"""
# An even number of moves there and back ends with the first picture. Others were drawn, then the first; then nothing.
AT_REST = f"""first => distsimSeen.drawn > 0 && ({DRAWN})() === first &&
    performance.now() - Math.max(distsimSeen.ended, distsimSeen.key) > 1000"""
COUNTED = "() => [distsimSeen.drawn, Math.max(0, distsimSeen.ended - distsimSeen.key) / 1e3]"
QUICK_PRESSES, MOST_SETTLING_SECONDS = 12, 0.6
# The accessible name of what has the focus, and its value as it is announced; whether that is within the explorer.
FOCUSED = """() => {
    const at = document.activeElement;
    const name = at.labels && at.labels.length ? at.labels[0].textContent : at.textContent;
    return [name.trim(), at.getAttribute("aria-valuetext"), Boolean(at.closest(".distsim-explorer"))];
}"""
MOST_CONTROLS = 30

FIRST, *OTHERS = ("race", "backup_workers")

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(240), pytest.mark.alone]


def when(name: str) -> Sequence[pytest.MarkDecorator]:
    """The mark of the stage that drives this explorer; `make test` drives the first."""
    if name == FIRST:
        return ()
    return [pytest.mark.more if name in OTHERS else pytest.mark.thorough]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=when(name)) for name in EXPLORERS],
)
def test_it_is_used_by_keyboard_alone(page: Any, problems: list[str], lab: Lab, name: str) -> None:
    drive, entry, asked = drive_of(name), EXPLORERS[name], recorded(page)
    _run_notebook(page, lab, name)
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    explorer.locator(".distsim-summary").wait_for(state="visible")
    controls = explorer.locator("input:visible, select:visible")
    assert controls.count() >= 2
    assert explorer.locator(".distsim-table tbody tr").count() >= 1
    assert entry.title in explorer.inner_text()
    assert [*sending(page), *inaccessible(page, ".distsim-explorer")] == []  # JupyterLab's own frame is not ours
    with in_the_dark(page):
        assert inaccessible(page, ".distsim-explorer") == []
        _screenshot(page, f"{name}_dark")
    _screenshot(page, f"{name}_start")

    start = page.evaluate(DRAWN)
    controls.first.focus()
    press(page, explorer, drive.move)
    page.wait_for_function(DIFFERS, arg=start)
    explorer.locator(".distsim-changed", has_text=drive.says).wait_for(state="visible")
    _screenshot(page, f"{name}_moved")

    alert = explorer.get_by_role("alert")
    if drive.impossible:
        for move in drive.impossible:
            press(page, explorer, move)
        alert.wait_for(state="visible")
        assert drive.refusal in alert.inner_text()
        assert "Traceback" not in page.locator(".jp-Notebook").inner_text()
        explorer.locator(".distsim-changed", has_text="last combination that is possible").wait_for(state="visible")
        _result_has_opacity(explorer, 0.7)
        assert inaccessible(page, ".distsim-explorer") == []
        _screenshot(page, f"{name}_impossible")
        with in_the_dark(page):
            assert inaccessible(page, ".distsim-explorer") == []
            _screenshot(page, f"{name}_impossible_dark")
        press(page, explorer, drive.cure)
        alert.wait_for(state="hidden")
        _result_has_opacity(explorer, 1.0)

    reset = explorer.get_by_role("button", name="reset", exact=True)
    tab_to(page, reset)
    page.keyboard.press("Enter")
    page.wait_for_function(f"before => ({DRAWN})() === before", arg=start)
    assert [*problems, *asked] == []
    _every_control_is_reached(page, explorer, EXPLORERS[name].open())
    _quick_moves_are_drawn_once(page, explorer, drive.move)
    took = [_scaled_seconds(page, explorer, drive.move)]
    if took[0] > MOST_SECONDS:  # a busy moment, or slow
        took.append(_scaled_seconds(page, explorer, drive.move))
    assert min(took) < MOST_SECONDS, f"from a key to the figure, scaled to a calm machine: {took} s"


@pytest.mark.more
@pytest.mark.alone
def test_it_runs_for_real_in_a_notebook(page: Any, problems: list[str], lab: Lab) -> None:
    _run_notebook(page, lab, "collectives")
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    explorer.get_by_role("button", name="Run it for real").click()
    expect = pytest.importorskip("playwright.sync_api").expect
    cancel = explorer.get_by_role("button", name="cancel")
    cancel.wait_for(state="visible", timeout=1_000 * PROMPT_SECONDS)
    expect(cancel).to_be_in_viewport()
    _screenshot(page, "real_run_under_way")
    found = explorer.get_by_role("status").filter(has=page.locator(".distsim-real"))
    found.or_(explorer.get_by_role("alert")).wait_for(state="visible", timeout=REAL_RUN_MILLISECONDS)
    assert found.locator(".distsim-real").inner_text() == "Run for real: ring-of-4, 4 workers."
    assert "The predicted total is" in found.inner_text()
    assert "Other links than in the figure: " in found.inner_text()  # 10 Gbit/s is more than can be emulated
    expect(found).to_be_in_viewport(ratio=1.0)  # beside the button, without scrolling
    expect(explorer.get_by_role("button", name="Run it for real")).to_be_in_viewport()
    explorer.locator(".js-plotly-plot").nth(1).wait_for(state="visible")
    assert explorer.get_by_role("button", name="cancel").count() == 0
    _screenshot(page, "real_run_done")
    assert not problems, problems


@pytest.mark.more
def test_voila_shows_it_without_code(page: Any, problems: list[str], app: str) -> None:
    asked = recorded(page)
    page.goto(f"{app}voila/render/index.ipynb")
    page.get_by_role("heading", name="Which question do you have?").wait_for(state="visible")
    _screenshot(page, "voila_index")
    link = page.get_by_role("link", name=EXPLORERS["backup_workers"].title)
    page.goto(f"{app}voila/render/{link.get_attribute('href')}")  # a click opens a page of its own
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    assert "import" not in page.locator("body").inner_text()
    assert page.locator(".jp-InputArea-editor:visible, .jp-CodeMirrorEditor:visible").count() == 0
    before = page.evaluate(DRAWN)
    explorer.locator("input:visible").first.focus()
    press(page, explorer, drive_of("backup_workers").move)
    page.wait_for_function(DIFFERS, arg=before)
    explorer.locator(".distsim-changed", has_text=drive_of("backup_workers").says).wait_for(state="visible")
    _screenshot(page, "voila_moved")
    assert [*sending(page), *inaccessible(page, ".distsim-explorer"), *asked] == []
    wrong = [problem for problem in problems if VOILAS_OWN not in problem]
    assert not wrong, wrong


@pytest.mark.more
def test_the_report_draws_itself_without_a_network(page: Any, problems: list[str], tmp_path: Path) -> None:
    asked = recorded(page)
    predicted = simulate(example("backup_server"))
    slower = simulate(example("backup_server").replacing({"compute.mean": "52 ms"}))
    measured = replace(
        slower, metadata=slower.metadata | {"producer": "measured", "scenario": predicted.scenario.table()}
    )
    file = tmp_path / "report.html"
    file.write_text(html([(compare(predicted, measured), predicted, measured, ["a note"])]), encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 3")
    for drawing in page.locator(".js-plotly-plot .main-svg:first-child").all():
        drawing.wait_for(state="visible")
        assert drawing.bounding_box()["width"] > 600
    assert page.get_by_role("heading", level=2).all_inner_texts() == [
        "backup-of-5: timelines",
        "All runs",
        "backup-of-5",
    ]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert [*sending(page), *inaccessible(page)] == []
    _screenshot(page, "report")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(IS_DARK)
    assert inaccessible(page) == []
    _screenshot(page, "report_in_the_dark")
    page.emulate_media(color_scheme="light")
    assert not page.evaluate(IS_DARK)
    assert [*problems, *asked] == []
    page.set_viewport_size({"width": 420, "height": 900})
    page.wait_for_function("document.documentElement.clientWidth <= 420")
    widths = page.evaluate("[document.documentElement.scrollWidth, document.querySelector('.plot').clientWidth]")
    assert widths[0] <= 420  # the page itself does not scroll sideways; its figures do
    assert widths[1] >= 700
    hints = page.locator(".scroll.distsim-scrolls")
    hints.nth(2).wait_for()
    assert "scrolls sideways" in hints.first.evaluate("part => getComputedStyle(part, '::before').content")
    assert inaccessible(page) == []
    _screenshot(page, "report_on_a_small_screen")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[str]:
    """The address of `distsim course --app`, which Ctrl-C ends."""
    pytest.importorskip("voila")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "distsim", "course", "--app", "--no-browser", "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
    try:
        give_up = time.monotonic() + 60.0
        while "explorers: " not in (tmp_path / "log").read_text():
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < give_up, (tmp_path / "log").read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30.0)


def _run_notebook(page: Any, lab: Lab, name: str) -> None:
    file = f"{name}-{len(list(lab.folder.iterdir()))}.ipynb"
    made = notebook(EXPLORERS[name])
    made.cells[1].execution_count = None
    nbformat.write(made, lab.folder / file)
    run_all(page, lab, file)
    page.wait_for_function(HAS_RUN)


def _every_control_is_reached(page: Any, explorer: Any, view: Any) -> None:
    """By Tab alone, with a name, and with its unit where it has one; "more" opens by the keyboard."""
    explorer.locator("input:visible, select:visible").first.focus()
    tab_to(page, explorer.get_by_role("button", name="more controls"))
    page.keyboard.press("Space")
    explorer.locator(".distsim-fold[aria-expanded=true]").wait_for()
    last = list(view.controls.values())[-1].heading
    explorer.locator(".distsim-label", has_text=last).wait_for(state="visible")
    explorer.locator("input:visible, select:visible").first.focus()
    told: dict[str, str | None] = {}
    for _ in range(MOST_CONTROLS):
        name, value, within = page.evaluate(FOCUSED)
        if not within:
            break
        told[name] = value
        page.keyboard.press("Tab")
    else:
        pytest.fail(f"Tab does not leave the explorer: {list(told)}")
    headings = [each.heading for each in view.controls.values()]
    assert [name for name in told if name in headings] == headings
    assert {"more controls", "reset", "the scenario files, to copy"} <= told.keys()
    assert "" not in told
    for each in view.controls.values():
        if hasattr(each, "unit"):
            assert (told[each.heading] or "").endswith(each.unit_of_one if each.value == 1 else each.unit)
        elif isinstance(each, Steps):
            assert told[each.heading] == each.options[each.index][0]


def _result_has_opacity(explorer: Any, opacity: float) -> None:
    """The sentence, the figure and the table; dimmed beside a refusal."""
    expect = pytest.importorskip("playwright.sync_api").expect
    for part in ("summary", "picture", "table"):
        expect(explorer.locator(f".distsim-{part}:visible")).to_have_css("opacity", f"{opacity:g}")


def _quick_moves_are_drawn_once(page: Any, explorer: Any, move: Move) -> None:
    """The last of many quick presses is drawn soon, and few of the others are."""
    back = {"ArrowRight": "ArrowLeft"}[move[1]]
    found = []
    for _ in range(2):  # again where other programs took the machine for a moment
        tab_to(page, control(explorer, move[0]))
        page.evaluate(COUNT)
        first = page.evaluate(DRAWN)
        for number in range(QUICK_PRESSES):
            page.keyboard.press(back if number % 2 else move[1])
        page.wait_for_function(AT_REST, arg=first)
        drawn, seconds = page.evaluate(COUNTED)
        found.append((seconds / max(1.0, slowness()), drawn))
        if found[-1][0] < MOST_SETTLING_SECONDS:
            break
    seconds, drawn = min(found)
    assert seconds < MOST_SETTLING_SECONDS, found
    assert drawn <= QUICK_PRESSES // 2, found


def _scaled_seconds(page: Any, explorer: Any, move: Move) -> float:
    """The median time from a key to the figure, there and back again, scaled by how slow the machine is just now."""
    took = []
    back = {"ArrowRight": "ArrowLeft"}[move[1]]
    for number in range(MOVES_TIMED):
        tab_to(page, control(explorer, move[0]))
        page.evaluate(WATCH)
        page.keyboard.press(back if number % 2 else move[1])
        took.append(page.evaluate(TOOK) / 1e3)
    return statistics.median(took) / max(1.0, slowness())


def _screenshot(page: Any, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
