"""A JupyterLab server and a browser for these tests, started once and ended after the tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jupyterlab import Lab, running

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
    with running(tmp_path_factory.mktemp("lab")) as started:
        yield started


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
        opened.set_default_timeout(90_000)  # on a busy machine
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
