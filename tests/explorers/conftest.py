"""A JupyterLab server and a browser for these tests, started once and ended after the tests."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.jupyterlab import START_SECONDS, Lab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a free loopback port, with a home, settings and runtime folder of its own."""
    pytest.importorskip("jupyterlab")
    tmp_path = tmp_path_factory.mktemp("lab")
    folder, home = tmp_path / "notebooks", tmp_path / "home"
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
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0",
        "--ServerApp.allow_root=True", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    log = tmp_path / "server.log"
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
    pytest.fail(f"JupyterLab did not start within {START_SECONDS} s:\n{log.read_text()[-2000:]}")


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, ended before another module starts its own. Skips where Chromium is missing."""
    if CHROMIUM is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the PATH")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield started
        finally:
            started.close()


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A page of 1400 x 1000 pixels with cookies of its own. Its last state is saved as a screenshot."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    try:
        opened = context.new_page()
        opened.set_default_timeout(40_000)
        yield opened
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "_", request.node.name).strip("_")
        opened.screenshot(path=SCREENSHOTS / f"{name}.png")
    finally:
        context.close()


@pytest.fixture
def problems(page: Any) -> list[str]:
    """The errors in the page's console, from the beginning."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: found.append(_told(message)) if message.type == "error" else None)
    return found


def _told(message: Any) -> str:
    return f"{message.text} ({message.location.get('url')})"
