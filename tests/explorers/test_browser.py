"""In a real browser: the explorer in JupyterLab, and the HTML report without a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim.comparison import compare
from distsim.examples import example
from distsim.figures.report import html
from distsim.simulation import simulate

playwright = pytest.importorskip("playwright.sync_api")

SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"
CODE = "from distsim.explorers.backup_workers import explorer\nexplorer()"
# What the figure draws, as text.
DRAWN = """() => {
    const plot = document.querySelector(".distsim-explorer .js-plotly-plot");
    return plot && plot.data ? JSON.stringify(plot.data.map(trace => [trace.name, trace.x, trace.y])) : null;
}"""
DIFFERS = f"before => {{ const drawn = ({DRAWN})(); return drawn !== null && drawn !== before; }}"
IS_RUNNING = r"() => /\[(\*|\d+)\]/.test(document.querySelector('.jp-InputPrompt').textContent)"
HAS_RUN = r"() => /\[\d+\]/.test(document.querySelector('.jp-InputPrompt').textContent)"
KERNEL_IS_READY = """async url => {
    const kernels = await (await fetch(url)).json();
    return kernels.some(kernel => kernel.execution_state === "idle" && kernel.connections > 0);
}"""
RUNS = 10

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(180)]


def test_controls_are_seen_keys_change_the_figure_and_an_impossible_combination_heals(page: Any, lab: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    _run_notebook(page, lab)

    explorer = page.locator(".distsim-explorer")
    explorer.locator(".js-plotly-plot .main-svg").first.wait_for(state="visible")
    for label in ("workers, backups included (2 to 64)", "backups (0 to 16 workers)", "straggler spread, cv"):
        heading = explorer.locator(".distsim-label", has_text=label).first
        heading.wait_for(state="visible")
    assert explorer.locator(".noUi-handle:visible").count() == 3
    explorer.locator(".distsim-summary").wait_for(state="visible")
    assert explorer.locator(".distsim-table tbody tr").count() == 2
    _screenshot(page, "explorer_start")

    backups = _handle(explorer, "backups (0 to 16")
    before = page.evaluate(DRAWN)
    backups.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(DIFFERS, arg=before)
    explorer.locator(".distsim-changed", has_text="backups from 1 to 2").wait_for(state="visible")
    assert explorer.locator(".distsim-table tbody th").nth(1).inner_text() == "2 backups"
    _screenshot(page, "explorer_two_backups")

    backups.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    message = explorer.get_by_role("alert")
    message.wait_for(state="visible")
    assert "must be fewer than the 5 workers" in message.inner_text()
    assert "Traceback" not in page.locator(".jp-Notebook").inner_text()
    explorer.locator(".distsim-changed", has_text="last combination that is possible").wait_for(state="visible")
    _screenshot(page, "explorer_impossible")

    backups.focus()
    page.keyboard.press("ArrowLeft")
    message.wait_for(state="detached")
    explorer.locator(".distsim-table tbody th", has_text="4 backups").wait_for(state="visible")

    explorer.get_by_role("button", name="reset", exact=True).click()
    explorer.locator(".distsim-table tbody th", has_text="1 backup").wait_for(state="visible")
    page.wait_for_function(f"before => ({DRAWN})() === before", arg=before)
    assert not problems, problems


def test_the_report_draws_itself_without_a_network(page: Any, tmp_path: Path) -> None:
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
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


def _run_notebook(page: Any, lab: Any) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(CODE)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, lab.folder / "explorer.ipynb")
    page.goto(lab.address("explorer.ipynb"))
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    # The indicator says "idle" before there is a kernel; the server knows better.
    page.wait_for_function(KERNEL_IS_READY, arg=f"{lab.url}api/kernels?token={lab.token}", polling=200)
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


def _handle(explorer: Any, label: str) -> Any:
    """The handle of the slider under this heading."""
    return explorer.locator(".widget-vbox", has=explorer.page.locator(".distsim-label", has_text=label)).last.locator(
        ".noUi-handle"
    )


def _screenshot(page: Any, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
