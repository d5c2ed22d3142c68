"""A running JupyterLab as tests use it: where its notebooks open, and its own command that runs all of one."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim.course.chapter import RECORDED

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


@contextmanager
def running(own: Path) -> Iterator[Lab]:
    """JupyterLab on a free loopback port, with a home, settings and runtime folder in `own`; ended afterwards."""
    folder, home = own / "notebooks", own / "home"
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir()
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    token = secrets.token_hex(16)
    environment = os.environ | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_TOKEN": token,
        RECORDED: "1",
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0",
        "--ServerApp.allow_root=True", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    log = own / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=stream, stderr=stream)
    try:
        yield Lab(_address(server, home / "runtime", log), token, folder)
    finally:
        _end(server)


def _address(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """The address that the server writes to a file once it listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for path in sorted(runtime.glob("jpserver-*.json")):
            try:
                info: dict[str, Any] = json.loads(path.read_text())
            except json.JSONDecodeError:
                continue  # the file is being written
            return f"http://127.0.0.1:{info['port']}{info['base_url']}"
        time.sleep(0.05)
    raise RuntimeError(f"JupyterLab did not start within {START_SECONDS} s:\n{log.read_text()[-2000:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ends the server and its kernels."""
    try:
        tree = [*psutil.Process(server.pid).children(recursive=True), psutil.Process(server.pid)]
    except psutil.NoSuchProcess:
        tree = []
    for process in tree:
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(tree, timeout=5)
    for process in alive:
        process.kill()
    server.wait(timeout=10)


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
            if not page.evaluate(IS_RUNNING):  # answered after what kept the page busy
                continue  # a page that has only just connected may lose the command
        return
    pytest.fail(f"the notebook did not run in {RUNS} attempts")
