"""The look of all figures: for each category of span, a colour of Okabe and Ito (2008) and a pattern.

`CATEGORY_OF` maps each kind of span to one of seven categories, for simulated and measured traces alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from distsim.trace import SpanKind

INK = "#222222"
PAPER = "#ffffff"
GRID = "#e3e3e3"
FONT = "Open Sans, DejaVu Sans, Verdana, Arial, sans-serif"
FONT_SIZE = 13
SMALL = 11
DARK = Path(__file__).parent / "dark" / "custom.css"  # the name under which JupyterLab loads a style sheet


@dataclass(frozen=True)
class Look:
    """The look of a category: `name` in legends, fill `colour`, and `pattern` over the fill (plotly's name)."""

    name: str
    colour: str
    pattern: str


COMPUTE = Look("compute", "#56b4e9", "")
COMMUNICATION = Look("communication", "#e69f00", "/")
WAIT = Look("wait", "#d9d9d9", ".")
APPLY = Look("apply", "#009e73", "x")
CHECKPOINT = Look("checkpoint", "#cc79a7", "-")
LOST = Look("lost work", "#f0e442", "\\")
RESTART = Look("restart", "#0072b2", "|")
PAUSES = (CHECKPOINT, LOST, RESTART)
CATEGORIES = (COMPUTE, COMMUNICATION, WAIT, APPLY, *PAUSES)

CATEGORY_OF: dict[SpanKind, Look] = {
    SpanKind.COMPUTE: COMPUTE,
    SpanKind.FORWARD: COMPUTE,
    SpanKind.BACKWARD: COMPUTE,
    SpanKind.SEND: COMMUNICATION,
    SpanKind.RECEIVE: COMMUNICATION,
    SpanKind.ALL_REDUCE: COMMUNICATION,
    SpanKind.WAIT: WAIT,
    SpanKind.APPLY: APPLY,
    SpanKind.CHECKPOINT: CHECKPOINT,
    SpanKind.RESTART: RESTART,
    SpanKind.LOST: LOST,
}

# Runs that stand beside each other, and the four stages of a chapter.
PREDICTED = Look("predicted", "#0072b2", "")
MEASURED = Look("measured", "#e69f00", "/")
GUESS = Look("guess", "#f0e442", ".")
FORMULA = Look("formula", "#009e73", "x")
TOTAL = Look("total", "#999999", "\\")
DROPPED = "#d55e00"
SERIES = (PREDICTED, MEASURED, FORMULA, CHECKPOINT, TOTAL)  # for several runs; the sixth run repeats the first look
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")  # of the lines of these runs
MARKS = ("circle", "square", "diamond", "triangle-up", "x")  # of the points of these runs


def marker(look: Look) -> dict[str, object]:
    """The `marker` of a bar trace in this look: fill, dark outline, pattern.

    >>> marker(COMMUNICATION)["pattern"]["shape"]
    '/'
    """
    pattern = {"shape": look.pattern, "fgcolor": INK, "fgopacity": 0.4, "size": 6, "solidity": 0.2}
    return {"color": look.colour, "line": {"color": INK, "width": 0.6}, "pattern": pattern | {"fillmode": "overlay"}}


def config() -> dict[str, object]:
    """The configuration of plotly.js for every figure, wherever it is shown: notebooks, explorers, pages.

    The toolbar has neither plotly's logo nor a button that sends the figure away, and no address to send it to.
    Each page sets "responsive" itself: JupyterLab resizes figures by its own means and hides a responsive figure, as
    the figure's place there has no height.

    >>> config()["plotlyServerURL"]
    ''
    """
    return {
        "displaylogo": False,
        "showSendToCloud": False,
        "plotlyServerURL": "",
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "sendChartToCloud"],
    }


def dark_style() -> str:
    """A style sheet as a `style` element: in a dark theme of JupyterLab or of a page, figures are dark."""
    return f"<style>{DARK.read_text('utf-8')}</style>"


def template() -> go.layout.Template:
    """The plotly template of every figure. The template is not registered globally."""
    axis = {
        "gridcolor": GRID, "linecolor": "#777777", "zerolinecolor": "#777777", "zeroline": False, "showline": True,
        "ticks": "outside", "tickcolor": "#777777", "automargin": True,
        "title": {"standoff": 8, "font": {"size": FONT_SIZE}},
    }  # fmt: skip
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": FONT_SIZE, "color": INK},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 10, "r": 10, "t": 40, "b": 10},
            "hoverlabel": {"bgcolor": PAPER, "bordercolor": INK, "font": {"color": INK, "family": FONT}},
            "legend": {"orientation": "h", "x": 0, "yanchor": "bottom", "y": 1.0, "font": {"size": FONT_SIZE - 1}},
            "modebar": {"remove": ["select", "lasso", "autoscale", "zoomin", "zoomout"]},
        }
    )
