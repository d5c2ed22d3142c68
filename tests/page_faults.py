"""What is wrong with a page in a real browser: figures that could be sent away, axe-core's findings, other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

NEEDED = ("serious", "critical")  # of axe-core's four levels, the two that keep readers out
OWN_HOSTS = {"127.0.0.1", "localhost", None}
DRAWN = "[...document.querySelectorAll('.js-plotly-plot')]"
SENDS = f"""() => {DRAWN}.map(plot => plot._context)
    .filter(told => told.showSendToCloud || told.displaylogo || told.plotlyServerURL || told.showLink)
    .map(told => `a figure may be sent to "${{told.plotlyServerURL}}"`)"""
KNOWN = ["Download plot as a PNG", "Zoom", "Pan", "Reset axes"]
BUTTONS = """known => [...document.querySelectorAll(".modebar-btn")].map(button => button.dataset.title ?? "a logo")
    .filter(title => !known.includes(title))"""
# Whether every figure, or the picture of one that is kept with a notebook, is dark.
IS_DARK = f"""() => {DRAWN}.map(plot => plot.querySelector(".svg-container") ?? plot)
    .every(drawn => getComputedStyle(drawn).filter.includes("invert"))"""


def recorded(page: Any) -> list[str]:
    """The addresses of other hosts that the page asks from now on. The list grows while the page is used."""
    found: list[str] = []

    def asked(address: str) -> None:
        if urlsplit(address).hostname not in OWN_HOSTS:
            found.append(address)

    page.context.on("request", lambda request: asked(request.url))
    page.on("websocket", lambda socket: asked(socket.url))
    return found


def sending(page: Any) -> list[str]:
    """What its figures offer beside looking at them."""
    return [*page.evaluate(SENDS), *page.evaluate(BUTTONS, KNOWN)]


def inaccessible(page: Any, *within: str) -> list[str]:
    """The serious and critical findings of axe-core, in what these selectors find, or in the whole page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = {"include": [[selector] for selector in within]} if within else None
    violations = axe.run(page, context, {"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{found['id']} ({found['impact']}): {node['target']}: {node['html'][:200]}"
        for found in violations
        if found["impact"] in NEEDED
        for node in found["nodes"]
    ]


@contextmanager
def in_the_dark(page: Any) -> Iterator[None]:
    """JupyterLab in its dark theme, chosen from its menu; afterwards in its light theme."""
    choose_theme(page, "JupyterLab Dark")
    page.wait_for_function(IS_DARK)
    yield
    choose_theme(page, "JupyterLab Light")
    page.wait_for_function(f"() => !({IS_DARK})()")


def choose_theme(page: Any, theme: str) -> None:
    """Chooses a theme of JupyterLab from its menu."""
    page.locator("li.lm-MenuBar-item", has_text="Settings").click()
    page.locator("li.lm-Menu-item", has_text="Theme").first.hover()
    page.locator('li.lm-Menu-item[data-command="apputils:change-theme"]', has_text=theme).first.click()
