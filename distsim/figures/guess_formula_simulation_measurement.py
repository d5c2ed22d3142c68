"""One quantity from four sources on one axis: guess, formula, simulation and measurement, with ranges of repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row, shown
from distsim.figures.theme import FORMULA, GUESS, INK, MEASURED, MEASURED_BAND, PAPER, PREDICTED, Look, marker, template
from distsim.figures.wording import above_or_below, signed

MEASUREMENT = "measurement"
LOOKS = {"guess": GUESS, "formula": FORMULA, "simulation": PREDICTED, MEASUREMENT: MEASURED}

ROW_PIXELS, AROUND_PIXELS = 46, 66  # of a bar, and of what is above and below all bars
BAR_PIXELS, LETTER_PIXELS, ASIDE_PIXELS = 500, 7, 16  # the width of the bars' panel, of a letter, around a label

Given = float | Sequence[float] | None


@dataclass(frozen=True)
class Stage:
    """The values from one source: the median, the least and the largest."""

    name: str
    value: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, name: str, given: float | Sequence[float]) -> Stage:
        """A stage from one value or repeats. Raises InputError where there is no value or a value is not finite."""
        try:
            values = np.atleast_1d(np.asarray(given, dtype=float))
        except (TypeError, ValueError):
            values = np.array([])
        if not len(values) or not np.isfinite(values).all():
            rule = "must be a finite number, or several of repeats"
            raise InputError.of(name, given, rule, "give None for what is not there yet")
        low, median, high = np.quantile(values, [0.0, 0.5, 1.0]).tolist()
        return cls(name, median, low, high, len(values))

    def told(self, unit: str) -> str:
        """The value with its unit; for repeats, also the range."""
        text = f"{shown(self.value)} {_of_one(unit) if shown(self.value) == '1' else unit}"
        return text if self.repeats == 1 else f"{text}, {shown(self.low)} to {shown(self.high)}"


def _of_one(unit: str) -> str:
    """The singular of a unit that is a noun, such as "updates"; other units stay as they are."""
    return unit[:-1] if unit.isalpha() and len(unit) > 2 and unit.endswith("s") and unit != "times" else unit


def guess_formula_simulation_measurement(
    guess: Given = None,
    formula: Given = None,
    simulation: Given = None,
    measurement: Given = None,
    unit: str = "ms",
    quantity: str = "step time",
    *,
    reported: bool = False,
) -> Captioned:
    """Draws bars of one quantity in `unit`; a line through all bars marks the measurement.

    Each argument is a number, the numbers of several repeats (other seeds, further real runs), or None where there is
    no value. Before there is a measurement, such a value is "not yet" there; afterwards it is left out. For repeats the
    bar is the median, and an error bar shows the range. A band shows the measured range.
    reported: whether somebody else reports the measurement; it is then called "reported".

    Raises InputError where a number is not finite.

    >>> shown = guess_formula_simulation_measurement(60.0, 81.5, [91.0, 92.0, 93.5], [91.8, 92.4, 95.0], "ms")
    >>> shown.summary.split("; ")[1]
    'the simulation is 0.43 % below, within the measured range, the formula is 12 % below, the guess is 35 % below.'
    """
    looks = {"reported" if reported and name == MEASUREMENT else name: look for name, look in LOOKS.items()}
    *_, actual = looks
    given = dict(zip(looks, (guess, formula, simulation, measurement), strict=True))
    stages = {name: Stage.of(name, values) for name, values in given.items() if values is not None}
    measured = stages.get(actual)
    if measured:
        looks = {name: look for name, look in looks.items() if name in stages}
    errors = {name: "–" if name == actual else _error(stages.get(name), measured) for name in looks}
    bars = [_bar(name, look, stages.get(name), unit) for name, look in looks.items()]
    figure = go.Figure(bars, _layout(stages, errors, unit, quantity))
    table: list[Row] = [_row(name, stages.get(name), errors[name], f"{quantity} ({unit})") for name in looks]
    return Captioned(figure, _sentence(stages, actual, unit, quantity), table)


def _bar(name: str, look: Look, stage: Stage | None, unit: str) -> go.Bar:
    reach = None
    if stage and stage.repeats > 1:
        up, down = [stage.high - stage.value], [stage.value - stage.low]
        reach = {"array": up, "arrayminus": down, "color": INK, "thickness": 1.6, "width": 6}
    return go.Bar(
        orientation="h", y=[name], x=[stage.value if stage else None], error_x=reach, name=name,
        marker=marker(look),
        hovertemplate=f"{name}: {stage.told(unit) if stage else 'not yet'}<extra></extra>",
    )  # fmt: skip


def _layout(stages: dict[str, Stage], errors: dict[str, str], unit: str, quantity: str) -> dict[str, Any]:
    texts = {
        name: (stages[name].told(unit) if name in stages else "not yet") + (f" ({error})" if error != "–" else "")
        for name, error in errors.items()
    }
    # Each label ends within the axis.
    free = {name: 1.0 - (LETTER_PIXELS * len(text) + ASIDE_PIXELS) / BAR_PIXELS for name, text in texts.items()}
    most = max((stage.high / max(free[name], 0.3) for name, stage in stages.items()), default=1.0) or 1.0
    *_, actual = errors  # all names, in their order
    measured = stages.get(actual)
    return {
        "template": template(), "height": ROW_PIXELS * len(errors) + AROUND_PIXELS, "showlegend": False,
        "margin": {"t": 16, "b": 50, "l": 10, "r": 12},
        "xaxis": {"title": {"text": f"{quantity} ({unit})"}, "range": [0, most]},
        "yaxis": {
            "categoryorder": "array", "categoryarray": list(errors), "range": [len(errors) - 0.5, -0.5],
            "showgrid": False,
        },
        "shapes": _through(measured) if measured else [],
        # The numbers have a background, so that the line of the measurement does not cross them.
        "annotations": [
            {
                "x": stages[name].high if name in stages else 0.0, "y": name, "xanchor": "left", "xshift": 8,
                "text": text, "showarrow": False, "bgcolor": PAPER, "borderpad": 1,
            }
            for name, text in texts.items()
        ],
    }  # fmt: skip


def _through(measured: Stage) -> list[dict[str, Any]]:
    """The measurement across all rows: a line, and for repeats a band behind the bars."""
    rows = {"yref": "paper", "y0": 0, "y1": 1}
    line = rows | {"type": "line", "x0": measured.value, "x1": measured.value}
    found = [line | {"line": {"color": INK, "width": 1.5, "dash": "dot"}}]
    if measured.repeats > 1:
        band = rows | {"type": "rect", "x0": measured.low, "x1": measured.high}
        found.append(band | {"fillcolor": MEASURED_BAND, "line": {"width": 0}, "layer": "below"})
    return found


def _row(name: str, stage: Stage | None, error: str, column: str) -> Row:
    return {
        "stage": name,
        column: stage.value if stage else None,
        "least": stage.low if stage else None,
        "largest": stage.high if stage else None,
        "repeats": stage.repeats if stage else 0,
        "error": error,
    }


def _error(stage: Stage | None, measured: Stage | None) -> str:
    if stage is None or measured is None or not measured.value:
        return "–"
    return signed(100.0 * (stage.value - measured.value) / measured.value, "%")


def _sentence(stages: dict[str, Stage], actual: str, unit: str, quantity: str) -> str:
    measured, verb = stages.get(actual), "reported" if actual == "reported" else "measured"
    if measured is None or not measured.value:
        known = [f"{name} {stage.told(unit)}" for name, stage in stages.items()]
        return f"Not {verb} yet; {quantity}: {', '.join(known)}." if known else "Nothing to show: no guess yet."
    parts = []
    for name in ("simulation", "formula", "guess"):
        if name in stages:
            within = measured.repeats > 1 and measured.low <= stages[name].value <= measured.high
            part = f"the {name} is {above_or_below(stages[name].value, measured.value)}"
            parts.append(f"{part}, within the {verb} range" if within else part)
    sentence = (
        f"{verb.capitalize()}: {'an' if quantity[:1] in tuple('aeio') else 'a'} {quantity} of {measured.told(unit)}"
    )
    return f"{sentence}; {', '.join(parts)}." if parts else f"{sentence}."
