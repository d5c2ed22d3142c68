"""A running JupyterLab as tests use it: where its notebooks open, and its own command that runs all of one."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

START_SECONDS = 60
IS_RUNNING = r"() => /\[(\*|\d+)\]/.test(document.querySelector('.jp-CodeCell .jp-InputPrompt').textContent)"
HAS_RUN = r"() => /\[\d+\]/.test(document.querySelector('.jp-CodeCell .jp-InputPrompt').textContent)"
KERNEL_IS_READY = """async ([url, path]) => {
    const sessions = await (await fetch(url)).json();
    return sessions.some(({path: of, kernel}) =>
        of === path && kernel.execution_state === "idle" && kernel.connections > 0);
}"""
RUNS = 10


@dataclass(frozen=True)
class Lab:
    """A running server: its address, its token, and the folder that it shows."""

    url: str
    token: str
    folder: Path

    def address(self, notebook: str) -> str:
        """Where a notebook of the folder opens, alone: a workspace of its own remembers no other tabs."""
        return f"{self.url}lab/workspaces/{Path(notebook).stem}/tree/{notebook}?token={self.token}"

    def end_kernels(self) -> None:
        """Of the notebooks that were open until now."""
        for kernel in json.load(self._asked("GET", "api/kernels")):
            self._asked("DELETE", f"api/kernels/{kernel['id']}")

    def _asked(self, method: str, path: str) -> Any:
        request = urllib.request.Request(
            self.url + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        return urllib.request.urlopen(request, timeout=START_SECONDS)


def run_all(page: Any, lab: Lab, file: str) -> None:
    """Opens a notebook of the folder and gives the menu's command; the kernel is at its first cell, or beyond."""
    playwright = pytest.importorskip("playwright.sync_api")
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
        return
    pytest.fail(f"the notebook did not run in {RUNS} attempts")
