"""Figures as files that work offline: PNG and SVG for slides and documents, and interactive HTML."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from distsim.errors import InputError
from distsim.extras import pip_install
from distsim.figures.html_page import PAGE, figure_html
from distsim.files import check_writable, replaced

if TYPE_CHECKING:
    from distsim.figures.captioned import Captioned

SUFFIXES = (".html", ".png", ".svg")
WIDTH, HEIGHT = 1000, 450  # in pixels; HEIGHT is for figures without a height of their own
PNG_SCALE = 2  # pixels of the file per pixel of the drawing
OFFLINE = {"mathjax": False}  # no figure uses MathJax, which kaleido would load over the network


def check_suffix(path: Path) -> None:
    """Raises InputError where the suffix is none of `SUFFIXES`."""
    if path.suffix.lower() not in SUFFIXES:
        rule = f"must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise InputError.of("save(path)", str(path), rule, f"name it {path.stem or 'figure'}.svg")


def save(captioned: Captioned, path: Path) -> None:
    """Writes the figure in the format of the suffix. A temporary file is written first and then replaces `path`.

    HTML holds the sentence and the table below the figure. Kaleido draws pictures in a Chromium without a window. The
    picture of an animation shows the first frame without buttons.

    Raises InputError where the suffix is none of `SUFFIXES`, the file cannot be written, or there is no Chromium.
    """
    check_suffix(path)
    check_writable(path)
    suffix = path.suffix.lower()
    content = page(captioned, path.stem).encode("utf-8") if suffix == ".html" else picture(captioned.figure, path)
    with replaced(path) as stream:
        stream.write(content)


def page(captioned: Captioned, name: str = "figure") -> str:
    """An HTML page with the figure, its sentence and its table; the page needs no other file and no network.

    name: of the file, which becomes the page's title.

    >>> import distsim
    >>> from distsim.figures import traffic
    >>> text = page(traffic(distsim.simulate(distsim.example("synchronous_ring"))))
    >>> text[:15], "up-link of worker 0" in text
    ('<!doctype html>', True)
    """
    title = escape(name.replace("_", " ").strip() or "figure")
    return PAGE.substitute(
        plotly=get_plotlyjs(), title=title, heading=title[0].upper() + title[1:],
        lead="The sentence and the table tell what the picture shows.",
        sections=f"<section>{figure_html('figure', captioned)}</section>",
    )  # fmt: skip


def picture(figure: go.Figure, path: Path) -> bytes:
    """The figure as PNG or SVG. path: its suffix gives the format, and errors name the path."""
    size = WIDTH, int(figure.layout.height or HEIGHT)
    scale = PNG_SCALE if path.suffix.lower() == ".png" else 1
    with _chromium(path) as kaleido:
        return bytes(kaleido.calc_fig_sync(_still(figure), opts=_options(path, size, scale), kopts=OFFLINE))


def pictures(figures: Sequence[go.Figure], path: Path, size: tuple[int, int], scale: float) -> list[bytes]:
    """Several figures of one size as PNG or SVG, drawn by one Chromium. Does not run in a notebook's event loop.

    size: width and height of a drawing in pixels. scale: pixels of the picture per pixel of the drawing.
    """

    async def drawn(kaleido: ModuleType) -> list[bytes]:
        async with kaleido.Kaleido(n=1, **OFFLINE) as browser:
            return [await browser.calc_fig(_still(one), opts=_options(path, size, scale)) for one in figures]

    with _chromium(path) as kaleido:
        return asyncio.run(drawn(kaleido))


def _still(figure: go.Figure) -> dict[str, object]:
    """The figure without its buttons and sliders."""
    drawn = go.Figure(figure)
    drawn.layout.updatemenus = drawn.layout.sliders = ()
    return dict(drawn.to_dict())


def _options(path: Path, size: tuple[int, int], scale: float) -> dict[str, object]:
    kind = path.suffix.lower().removeprefix(".")
    return {"format": kind, "width": size[0], "height": size[1], "scale": scale}


@contextmanager
def _chromium(path: Path) -> Iterator[ModuleType]:
    """The module kaleido. Raises InputError where kaleido or a Chromium is missing."""
    try:
        import kaleido
        from kaleido.errors import ChromeNotFoundError
    except ImportError:
        rule, cure = "needs kaleido, which is not installed", f"{pip_install('kaleido')}, or save as .html"
        raise InputError.of("save(path)", str(path), rule, cure) from None
    try:
        yield kaleido
    except ChromeNotFoundError:
        rule = "is drawn by Chromium or Chrome, and neither was found"
        cure = "apt-get install chromium, or save as .html"
        raise InputError.of("save(path)", str(path), rule, cure) from None
