"""In a real browser: every explorer in JupyterLab by keyboard alone, one as a Voilà page, and the report offline."""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.comparison import compare
from distsim.examples import example
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.notebooks import notebook
from distsim.figures.report import html
from distsim.simulation import simulate
from distsim.speed import floor

playwright = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "out" / "screenshots"
# What the figure draws, as text.
DRAWN = """() => {
    const plot = document.querySelector(".distsim-explorer .js-plotly-plot");
    return plot && plot.data ? JSON.stringify([plot.data.map(trace => [trace.name, trace.x, trace.y, trace.z]),
        (plot.layout.sliders || []).map(slider => slider.active)]) : null;
}"""
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
IS_RUNNING = r"() => /\[(\*|\d+)\]/.test(document.querySelector('.jp-CodeCell .jp-InputPrompt').textContent)"
HAS_RUN = r"() => /\[\d+\]/.test(document.querySelector('.jp-CodeCell .jp-InputPrompt').textContent)"
KERNEL_IS_READY = """async ([url, path]) => {
    const sessions = await (await fetch(url)).json();
    return sessions.some(({path: of, kernel}) =>
        of === path && kernel.execution_state === "idle" && kernel.connections > 0);
}"""
PLACE = """element => {
    const active = document.activeElement;
    if (element === active) return "here";
    return active.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING ? "before" : "after";
}"""
MOST_TABS = 20
# Voilà's theme asks for a font of icons, which is not there offline; and its page asks for the end of its kernel as it
# is left, without the cookie's token: `distsim course` has idle kernels ended instead.
VOILAS_OWN = ("https://cdn.jsdelivr.net/npm/@fortawesome", "/voila/api/shutdown/")
RUNS = 10
REAL_RUN_MILLISECONDS = 120_000
MOVES_TIMED, MOST_SECONDS = 5, 0.4  # from a key to the figure, on a calm machine

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(240)]

Move = tuple[str, str]  # the beginning of a control's label, a key


@dataclass(frozen=True)
class Drive:
    """How one explorer is driven. move: what changes its figure, and what is said of that.

    impossible: moves that lead to a combination which is refused with `refusal`, and one that leads out of it. learns:
    whether it shows progress instead of answering at once.
    """

    move: Move
    says: str
    impossible: tuple[Move, ...] = ()
    refusal: str = ""
    cure: Move = ("", "")
    learns: bool = False


DRIVES = {
    "backup_workers": Drive(
        ("backups (0", "ArrowRight"), "backups from 1 to 2", (("backups (0", "ArrowRight"),) * 3,
        "must be fewer than the 5 workers", ("backups (0", "ArrowLeft"),
    ),
    "update_policies": Drive(("may be ahead by", "ArrowRight"), "may be ahead by from 2 to 3"),
    "ring_or_server": Drive(
        ("servers (1", "ArrowRight"), "servers from 1 to 2",
        (("servers live on", "Space"), *(("servers (1", "ArrowRight"),) * 5),
        "must be at most the 6 workers", ("workers, up to", "ArrowRight"),
    ),
    "collectives": Drive(("rounds done", "ArrowRight"), "rounds done from 0 to 1"),
    "overlap": Drive(("bucket size", "ArrowRight"), "bucket size from 25 to 50"),
    "pipeline": Drive(("micro-batches", "ArrowRight"), "micro-batches from 8 to 16"),
    "failures": Drive(
        ("useful work between", "ArrowRight"), "useful work between checkpoints from 60 to 90",
        (("useful work between", "ArrowRight"),) * 5, "hardly lets a run get from one checkpoint to the next",
        ("useful work between", "ArrowLeft"),
    ),
    "race": Drive(
        ("learning rate", "ArrowRight"), "learning rate from 0.15 to 0.2",
        (("gradients an update waits", "ArrowRight"),) * 5, "must be at most the 8 workers",
        ("gradients an update waits", "ArrowLeft"),
    ),
    "batch_size": Drive(("epochs", "ArrowRight"), "epochs from 3 to 5", learns=True),
    "your_cluster": Drive(
        ("workers (1", "ArrowRight"), "workers from 4 to 5",
        (("calibration file", "x"), ("calibration file", "Enter"), ("calibration file", "Backspace")),
        "cannot be read (No such file", ("calibration file", "Enter"),
    ),
}  # fmt: skip


def test_every_explorer_is_driven() -> None:
    assert set(DRIVES) == set(EXPLORERS)


@pytest.mark.parametrize("name", EXPLORERS)
def test_it_is_used_by_keyboard_alone(page: Any, problems: list[str], lab: Any, name: str) -> None:
    drive, entry = DRIVES[name], EXPLORERS[name]
    _run_notebook(page, lab, name)
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    explorer.locator(".distsim-summary").wait_for(state="visible")
    headings = explorer.locator(".distsim-label:visible, .widget-checkbox label:visible")
    controls = explorer.locator(
        ".noUi-handle:visible, select:visible, .widget-checkbox input:visible, .widget-text input:visible"
    )
    assert headings.count() == controls.count() >= 2
    assert all(heading.strip() for heading in headings.all_inner_texts())
    assert explorer.locator(".distsim-table tbody tr").count() >= 1
    assert entry.title in explorer.inner_text()
    _screenshot(page, f"{name}_start")

    start = page.evaluate(DRAWN)
    controls.first.focus()
    _press(page, explorer, drive.move)
    page.wait_for_function(DIFFERS, arg=start)
    explorer.locator(".distsim-changed", has_text=drive.says).wait_for(state="visible")
    _screenshot(page, f"{name}_moved")

    alert = explorer.get_by_role("alert")
    if drive.impossible:
        for move in drive.impossible:
            _press(page, explorer, move)
        alert.wait_for(state="visible")
        assert drive.refusal in alert.inner_text()
        assert "Traceback" not in page.locator(".jp-Notebook").inner_text()
        explorer.locator(".distsim-changed", has_text="last combination that is possible").wait_for(state="visible")
        _screenshot(page, f"{name}_impossible")
        _press(page, explorer, drive.cure)
        alert.wait_for(state="detached")

    reset = explorer.get_by_role("button", name="reset", exact=True)
    _tab_to(page, reset)
    page.keyboard.press("Enter")
    page.wait_for_function(f"before => ({DRAWN})() === before", arg=start)
    assert not problems, problems
    if drive.learns:
        return
    took = [_scaled_seconds(page, explorer, drive.move)]
    if took[0] > MOST_SECONDS:  # a busy moment, or slow
        took.append(_scaled_seconds(page, explorer, drive.move))
    assert min(took) < MOST_SECONDS, f"from a key to the figure, scaled to a calm machine: {took} s"


def test_it_runs_for_real_in_a_notebook(page: Any, problems: list[str], lab: Any) -> None:
    _run_notebook(page, lab, "collectives")
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    explorer.get_by_role("button", name="run it for real").click()
    explorer.get_by_role("button", name="cancel").wait_for(state="visible")
    _screenshot(page, "real_run_under_way")
    heading = explorer.locator(".distsim-real, .distsim-message")
    heading.wait_for(state="visible", timeout=REAL_RUN_MILLISECONDS)
    assert heading.inner_text() == "Run for real: ring-of-4, 4 workers."
    summary = explorer.locator(".distsim-summary", has_text="The predicted total is")
    summary.wait_for(state="visible")
    explorer.locator(".js-plotly-plot").nth(1).wait_for(state="visible")
    assert explorer.get_by_role("button", name="cancel").count() == 0
    summary.scroll_into_view_if_needed()
    _screenshot(page, "real_run_done")
    assert not problems, problems


def test_voila_shows_it_without_code(page: Any, problems: list[str], app: str) -> None:
    page.goto(f"{app}voila/render/index.ipynb")
    page.get_by_role("heading", name="Which question do you have?").wait_for(state="visible")
    _screenshot(page, "voila_index")
    page.get_by_role("link", name=EXPLORERS["backup_workers"].title).click()
    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    assert "import" not in page.locator("body").inner_text()
    assert page.locator(".jp-InputArea-editor:visible, .jp-CodeMirrorEditor:visible").count() == 0
    before = page.evaluate(DRAWN)
    explorer.locator(".noUi-handle:visible").first.focus()
    _press(page, explorer, DRIVES["backup_workers"].move)
    page.wait_for_function(DIFFERS, arg=before)
    explorer.locator(".distsim-changed", has_text=DRIVES["backup_workers"].says).wait_for(state="visible")
    _screenshot(page, "voila_moved")
    wrong = [problem for problem in problems if not any(known in problem for known in VOILAS_OWN)]
    assert not wrong, wrong


def test_the_report_draws_itself_without_a_network(page: Any, problems: list[str], tmp_path: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
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
    assert page.get_by_role("heading", level=2).all_inner_texts() == ["Overview", "backup-of-5"]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert [address for address in asked if not address.startswith(("file:", "data:", "blob:"))] == []
    assert not problems, problems
    _screenshot(page, "report")
    page.set_viewport_size({"width": 420, "height": 900})
    page.wait_for_function("document.documentElement.clientWidth <= 420")
    widths = page.evaluate("[document.documentElement.scrollWidth, document.querySelector('.plot').clientWidth]")
    assert widths[0] <= 420  # the page itself does not scroll sideways; its figures do
    assert widths[1] >= 700
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


def _run_notebook(page: Any, lab: Any, name: str) -> None:
    file = f"{name}-{len(list(lab.folder.iterdir()))}.ipynb"
    made = notebook(EXPLORERS[name])
    made.cells[1].execution_count = None
    nbformat.write(made, lab.folder / file)
    lab.end_kernels()
    page.goto(lab.address(file))
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    # The indicator says "idle" before there is a kernel; the server knows better.
    page.wait_for_function(KERNEL_IS_READY, arg=[f"{lab.url}api/sessions?token={lab.token}", file], polling=200)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(state="visible")
    for _ in range(RUNS):
        page.locator("li.lm-MenuBar-item", has_text="Run").click()
        page.locator('li.lm-Menu-item[data-command="runmenu:run-all"]').click()
        try:
            page.wait_for_function(IS_RUNNING, timeout=3_000)
        except playwright.TimeoutError:
            continue  # a page that has only just connected may lose the command
        page.wait_for_function(HAS_RUN)
        return
    pytest.fail(f"the notebook did not run in {RUNS} attempts")


def _control(explorer: Any, label: str) -> Any:
    """What takes the keys of the control under, or beside, this label."""
    box = explorer.locator(".widget-checkbox", has_text=label)
    if box.count():
        return box.locator("input")
    heading = explorer.page.locator(".distsim-label", has_text=label)
    return explorer.locator(".widget-vbox", has=heading).last.locator(".noUi-handle, select, .widget-text input")


def _press(page: Any, explorer: Any, move: Move) -> None:
    """Goes to the control by Tab, and presses the key."""
    label, key = move
    _tab_to(page, _control(explorer, label))
    page.keyboard.press(key)


def _tab_to(page: Any, target: Any) -> None:
    """Tab, or Shift+Tab where the target stands before what has the focus."""
    for _ in range(MOST_TABS):
        where = target.evaluate(PLACE)
        if where == "here":
            return
        page.keyboard.press("Shift+Tab" if where == "before" else "Tab")
    pytest.fail("Tab does not lead to a control")


def _scaled_seconds(page: Any, explorer: Any, move: Move) -> float:
    """The median time from a key to the figure, there and back again, scaled by how slow the machine is just now."""
    took = []
    back = {"ArrowRight": "ArrowLeft"}[move[1]]
    for number in range(MOVES_TIMED):
        _tab_to(page, _control(explorer, move[0]))
        page.evaluate(WATCH)
        page.keyboard.press(back if number % 2 else move[1])
        took.append(page.evaluate(TOOK) / 1e3)
    return statistics.median(took) / max(1.0, _slowness())


def _slowness() -> float:
    """How many times longer than on a calm machine SimPy's own timeouts take, by the clock on the wall."""
    start = time.perf_counter()
    floor.timeouts_per_second()
    calm = floor.SAMPLES * floor.PROCESSES * floor.TIMEOUTS / floor.NOMINAL_TIMEOUTS_PER_SECOND
    return (time.perf_counter() - start) / calm


def _screenshot(page: Any, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
