"""The browser's own inputs as widgets: each has an accessible name, bounds, and a value announced with its unit.

ipywidgets' own sliders have no accessible name, and announce the position of a value in place of the value. These
widgets keep the values, bounds and checks of ipywidgets, and replace the views by the browser's own elements.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets


class _Native(anywidget.AnyWidget):
    """An element of the browser. kind: the function in controls.js that makes it. heading: its name, and text."""

    _esm = Path(__file__).parent / "browser" / "controls.js"
    kind = traitlets.Unicode().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)


class IntRange(_Native, widgets.IntSlider):  # type: ignore[misc]
    """A slider over whole numbers. unit: said after the value; unit_of_one: after 1."""

    kind = traitlets.Unicode("range").tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    unit_of_one = traitlets.Unicode().tag(sync=True)


class FloatRange(_Native, widgets.FloatSlider):  # type: ignore[misc]
    """A slider over numbers. unit: said after the value; unit_of_one: after 1."""

    kind = traitlets.Unicode("range").tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    unit_of_one = traitlets.Unicode().tag(sync=True)


class Steps(_Native, widgets.SelectionSlider):  # type: ignore[misc]
    """A slider that stops at each of `options`, pairs of text and value.

    >>> Steps(heading="gradient", options=[("1 MiB", 1.0), ("4 MiB", 4.0)], value=4.0).index
    1
    """

    kind = traitlets.Unicode("steps").tag(sync=True)


class List(_Native, widgets.Dropdown):  # type: ignore[misc]
    """A list that opens."""

    kind = traitlets.Unicode("list").tag(sync=True)


class Check(_Native, widgets.Checkbox):  # type: ignore[misc]
    """A box to tick."""

    kind = traitlets.Unicode("check").tag(sync=True)


class Line(_Native, widgets.Text):  # type: ignore[misc]
    """A line of text, reported when the user presses Enter or leaves the line."""

    kind = traitlets.Unicode("line").tag(sync=True)


class Status(_Native, widgets.HTML):  # type: ignore[misc]
    """HTML in a place that screen readers watch: they announce each new text."""

    kind = traitlets.Unicode("status").tag(sync=True)


class Fold(_Native):
    """A button that opens and closes what it is about. value: whether that is open."""

    kind = traitlets.Unicode("fold").tag(sync=True)
    value = traitlets.Bool(False).tag(sync=True)


def folded(heading: str, body: widgets.Widget) -> widgets.Widget:
    """`body` under a button that shows and hides it, closed at first.

    >>> body = widgets.VBox()
    >>> fold = folded("more", body).children[0]
    >>> fold.value = True
    >>> body.layout.display
    'flex'
    """
    fold = Fold(heading=heading)

    def show(_: Any) -> None:
        body.layout.display = "flex" if fold.value else "none"

    fold.observe(show, names="value")
    show(None)
    return widgets.VBox([fold, body], layout={"width": "100%"})
