"""The explorer in a real JupyterLab: controls that can be seen, a key that changes the figure, an error that heals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

playwright = pytest.importorskip("playwright.sync_api")

SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"
CODE = "from distsim.explorers.backup_workers import explorer\nexplorer()"
# What the figure draws, as text.
DRAWN = """() => {
    const plot = document.querySelector(".distsim-explorer .js-plotly-plot");
    return plot && plot.data ? JSON.stringify(plot.data.map(trace => [trace.name, trace.x, trace.y])) : null;
}"""
DIFFERS = f"before => {{ const drawn = ({DRAWN})(); return drawn !== null && drawn !== before; }}"
HAS_RUN = r"() => /\[\d+\]/.test(document.querySelector('.jp-InputPrompt').textContent)"
KERNEL_IS_READY = """async url => {
    const kernels = await (await fetch(url)).json();
    return kernels.some(kernel => kernel.execution_state === "idle" && kernel.connections > 0);
}"""
RUNS = 4

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(180)]


def test_controls_are_seen_keys_change_the_figure_and_an_impossible_combination_heals(lab: Any, page: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    _run_notebook(lab, page)

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


def _run_notebook(lab: Any, page: Any) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(CODE)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, lab.folder / "explorer.ipynb")
    page.goto(lab.address("explorer.ipynb"))
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    # The indicator says "idle" before there is a kernel; the server knows better.
    page.wait_for_function(KERNEL_IS_READY, arg=f"{lab.url}api/kernels?token={lab.token}", polling=200)
    for _ in range(RUNS):
        page.locator("li.lm-MenuBar-item", has_text="Run").click()
        page.locator('li.lm-Menu-item[data-command="runmenu:run-all"]').click()
        try:
            page.wait_for_function(HAS_RUN, timeout=15_000)  # a busy machine may lose a cell while it connects
        except playwright.TimeoutError:
            continue
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
