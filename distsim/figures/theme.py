"""The look of all figures: one table of meanings, each with a colour and perhaps a pattern.

No other module names a colour. A colour has one meaning in all figures, and so has the pattern of a category of spans.
Categories of spans have the colours of Okabe and Ito (2008). Within a group, colours differ also for readers who cannot
tell red from green or blue from yellow, and in the dark scheme.

`CATEGORY_OF` maps each kind of span to one of seven categories, for simulated and measured traces alike.
"""

from __future__ import annotations

import colorsys
import re
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from distsim.trace import SpanKind

INK = "#222222"
PAPER = "#ffffff"
GRID = "#e3e3e3"
AXIS = "#777777"
LANE = "#b5b5b5"  # the line of a rank over which messages go
LABEL_PAPER = "rgba(255,255,255,0.85)"  # behind a label that stands on lines
FONT = "Open Sans, DejaVu Sans, Verdana, Arial, sans-serif"
FONT_SIZE = 13
SMALL = 11
LETTER_WIDTH = 0.57  # of a letter or digit, over the size of its font
NARROW_PIXELS = 640  # pages draw no figure in less width: a small screen moves it sideways
SCROLLING = Path(__file__).parent / "browser" / "scrolling.js"  # pages with wide tables and figures take this script
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
    SpanKind.REDUCE_SCATTER: COMMUNICATION,
    SpanKind.ALL_GATHER: COMMUNICATION,
    SpanKind.WAIT: WAIT,
    SpanKind.APPLY: APPLY,
    SpanKind.CHECKPOINT: CHECKPOINT,
    SpanKind.RESTART: RESTART,
    SpanKind.LOST: LOST,
}

# The four stages of a chapter. Predicted and measured have a pair of colours that nothing else has.
PREDICTED = Look("predicted", "#1f2f8f", "")
MEASURED = Look("measured", "#8a3b00", "+")
MEASURED_BAND = "rgba(138,59,0,0.18)"  # the same colour, transparent
GUESS = Look("guess", PAPER, "")
FORMULA = Look("formula", "#3f8f7f", "")
TOTAL = Look("total", "#999999", "")
STAGES = (PREDICTED, MEASURED, GUESS, FORMULA, TOTAL)

# Parts of a category: two shades of computing, and of an all-reduce what the backward hides and what it does not.
BACKWARD = Look("backward", "#c5e6f8", "")
EXPOSED = Look("exposed communication", "#cf7500", "")
HELD = Look("micro-batches held", "#e8d5a8", "")

COMPUTE_BAND = "rgba(86,180,233,0.35)"  # the colour of computing, transparent

# The two directions of a NIC's links, and of messages: up to the server, down from the server.
UP = Look("up-link", "#00565a", "")
DOWN = Look("down-link", "#b04a9a", "")
LINKS = (UP, DOWN)
UP_BAND = "rgba(0,86,90,0.2)"  # the colour of up-links, transparent

# Several runs, policies, algorithms or answers, in the order of a figure. The sixth repeats the first.
RUNS = (
    Look("first run", "#005f66", ""),
    Look("second run", "#dd6688", "\\"),
    Look("third run", "#3399dd", "x"),
    Look("fourth run", "#777700", "-"),
    Look("fifth run", "#7733dd", "|"),
)
OTHER_RUNS = Look("the others", "#b8b8b8", "")
DASHES = ("solid", "dash", "dot", "dashdot", "18px,4px")  # of the lines of runs; a legend shows each whole
MARKS = ("circle", "square", "diamond", "triangle-up", "x")  # of the points of runs

# The chunks of a collective: what a rank holds of a sum.
PARTIAL = Look("some workers' parts", "#b79fd6", "")
COMPLETE = Look("complete", "#7cc674", "")
CHUNKS = (PARTIAL, COMPLETE)

DROPPED = "#d55e00"  # what is dropped, wrong or late, and what the end of a run waited for
HINT = PAPER  # a small mark with an outline, beside a curve

# From little to much. Every colour is light enough for numbers in INK.
MAGNITUDE = ((0.0, "#f4eff8"), (1.0, PARTIAL.colour))
SHARE_OF_SUM = ((0.0, PAPER), (1e-6, "#ede6f5"), (1 - 1e-6, PARTIAL.colour), (1.0, COMPLETE.colour))
BYTES = ((0.0, PAPER), (1e-9, "#e2f1ef"), (1.0, UP.colour))


# Colours around the circle of hues that tell chunks apart beside their places, or the values of a setting: all light
# enough for text in INK.
FIRST_HUE, CHUNK_LIGHTNESS, CHUNK_SATURATION = 0.57, 0.79, 0.58


def chunk_colours(chunks: int) -> list[str]:
    """A colour for each chunk; neighbouring chunks have neighbouring hues.

    >>> len(set(chunk_colours(16)))
    16
    """
    hues = [(FIRST_HUE + chunk / chunks) % 1.0 for chunk in range(chunks)]
    found = [colorsys.hls_to_rgb(hue, CHUNK_LIGHTNESS, CHUNK_SATURATION) for hue in hues]
    return ["#" + "".join(f"{round(255 * share):02x}" for share in rgb) for rgb in found]


def dark(colour: str) -> str:
    """The colour in a dark theme: what the filter of the style sheet for dark themes makes of it.

    The filter inverts each share of red, green and blue, and then turns the hues back by 180 degrees.

    >>> dark(PAPER), dark(INK)
    ('#121212', '#d0d0d0')
    """
    (amount,) = re.findall(r"invert\(([\d.]+)\) hue-rotate\(180deg\)", DARK.read_text("utf-8"))[:1]
    inverted = [float(amount) + share / 255 * (1 - 2 * float(amount)) for share in bytes.fromhex(colour[1:])]
    grey = 2 * sum(weight * share for weight, share in zip((0.213, 0.715, 0.072), inverted, strict=True))
    return "#" + "".join(f"{round(255 * min(max(grey - share, 0.0), 1.0)):02x}" for share in inverted)


def marker(look: Look) -> dict[str, object]:
    """The `marker` of a bar trace in this look: fill, dark outline, pattern.

    >>> marker(COMMUNICATION)["pattern"]["shape"]
    '/'
    """
    red, green, blue = bytes.fromhex(look.colour[1:])
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 110
    pattern = {
        "shape": look.pattern, "fgcolor": PAPER if dark else INK, "fgopacity": 0.4, "size": 6, "solidity": 0.2,
    }  # fmt: skip
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
        "gridcolor": GRID, "linecolor": AXIS, "zerolinecolor": AXIS, "zeroline": False, "showline": True,
        "ticks": "outside", "tickcolor": AXIS, "automargin": True, "ticklabeloverflow": "allow",
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
