"""A figure as a file: PNG and SVG for slides and README files, HTML to move about in; each stands alone, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from distsim.errors import InputError
from distsim.figures.page import PAGE, figure_html
from distsim.files import check_writable, replaced

if TYPE_CHECKING:
    from distsim.figures.captioned import Captioned

SUFFIXES = (".html", ".png", ".svg")
WIDTH, HEIGHT = 1000, 450  # in pixels; the height where a figure has none of its own
PNG_SCALE = 2  # pixels of the file for one of the drawing


def check_suffix(path: Path) -> None:
    """Raises InputError where the name does not say which of the formats is meant."""
    if path.suffix.lower() not in SUFFIXES:
        rule = f"must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise InputError.of("save(path)", str(path), rule, f"name it {path.stem or 'figure'}.svg")


def save(captioned: Captioned, path: Path) -> None:
    """Writes the figure as its file's suffix says, to a temporary name that then takes `path`'s place.

    HTML has the sentence and the table below the figure. Pictures are drawn by kaleido in a Chromium without a window;
    of an animation they show the first picture, without its buttons.

    Raises InputError where the suffix is none of `SUFFIXES`, the file cannot be written, or there is no Chromium.
    """
    check_suffix(path)
    check_writable(path)
    suffix = path.suffix.lower()
    content = page(captioned).encode("utf-8") if suffix == ".html" else picture(captioned.figure, path)
    with replaced(path) as stream:
        stream.write(content)


def page(captioned: Captioned) -> str:
    """An HTML page with the figure, its sentence and its table, which needs nothing beside it.

    >>> import distsim
    >>> from distsim.figures import traffic
    >>> text = page(traffic(distsim.simulate(distsim.example("synchronous_ring"))))
    >>> text[:15], "up-link of worker 0" in text
    ('<!doctype html>', True)
    """
    return PAGE.substitute(
        plotly=get_plotlyjs(), title="figure", heading="Figure",
        lead="The sentence and the table tell what the picture shows.",
        sections=f"<section>{figure_html('figure', captioned)}</section>",
    )  # fmt: skip


def picture(figure: go.Figure, path: Path) -> bytes:
    """The figure as PNG or SVG. path: its suffix says which, and messages name it."""
    try:
        import kaleido
        from kaleido.errors import ChromeNotFoundError
    except ImportError:
        cure = "pip install 'distsim-course[course]', or save as .html"
        raise InputError.of("save(path)", str(path), "needs kaleido, which is not installed", cure) from None
    drawn = go.Figure(figure)
    drawn.layout.updatemenus = drawn.layout.sliders = ()
    kind = path.suffix.lower().removeprefix(".")
    options = {
        "format": kind, "width": WIDTH, "height": int(figure.layout.height or HEIGHT),
        "scale": PNG_SCALE if kind == "png" else 1,
    }  # fmt: skip
    try:
        # Without MathJax, which no figure uses, and which would be asked for over the network.
        return bytes(kaleido.calc_fig_sync(drawn.to_dict(), opts=options, kopts={"mathjax": False}))
    except ChromeNotFoundError:
        rule = "is drawn by Chromium or Chrome, and neither was found"
        cure = "apt-get install chromium, or save as .html"
        raise InputError.of("save(path)", str(path), rule, cure) from None
