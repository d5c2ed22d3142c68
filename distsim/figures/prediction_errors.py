"""Several runs, each predicted and measured: both values side by side, and the error of each prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.guess_formula_simulation_measurement import Stage
from distsim.figures.theme import INK, MARKS, MEASURED, PREDICTED, TOTAL, marker, template
from distsim.figures.wording import above_or_below, signed, two_digits

ROW_PIXELS, AROUND_PIXELS = 38, 130
WIDE = 8.0  # the largest over the least; beyond this ratio the axis is logarithmic, which separates small times
TICKS = [part * 10.0**power for power in range(-6, 9) for part in (1, 2, 5)]
# Free space for the numbers beside the bars, as a share of the errors' range: on one side, and on each of two.
ROOM, ROOM_EACH = 0.55, 1.0


def prediction_errors(
    predicted: Mapping[str, float],
    measured: Mapping[str, float | Sequence[float]],
    unit: str = "ms",
    quantity: str = "step time",
) -> Captioned:
    """Draws predictions and measurements in `unit` on the left, and errors in percent of the measurement on the right.

    If a measurement has several repeats, the median counts. On the left, error bars show the range of the repeats.
    On the right, error bars show the errors against the largest and the least repeat.

    Raises InputError where `predicted` and `measured` have different names, or a number is infinite or not above 0.

    >>> shown = prediction_errors({"ring": 66.0, "server": 80.0}, {"ring": [60.0, 61.0, 62.0], "server": 80.0})
    >>> shown.summary.split(". ")[0]
    'Of 2 predictions of the step time, ring is the furthest off: 8.2 % above the measured 61 ms'
    """
    if set(predicted) != set(measured):
        rule = f"must be predictions of what was measured, {', '.join(measured) or 'nothing'}"
        raise InputError.of("predicted", list(predicted), rule, "use the same names in both")
    rows = {name: (Stage.of(name, predicted[name]), Stage.of(name, measured[name])) for name in predicted}
    for name, stages in rows.items():
        if any(stage.low <= 0.0 for stage in stages):
            raise InputError.of(name, min(stage.low for stage in stages), "must be above 0", "leave it out")
    figure = make_subplots(cols=2, horizontal_spacing=0.06, column_widths=[0.55, 0.45], shared_yaxes=True)
    height = ROW_PIXELS * len(rows) + AROUND_PIXELS
    figure.update_layout(template=template(), height=height, margin={"t": 40, "b": 50, "l": 10, "r": 14}, bargap=0.45)
    figure.update_layout(legend={"y": 1.0 + 8 / max(height - 90, 1)})
    figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=list(rows))
    if rows:
        _add_both(figure, rows, unit, quantity)
        _add_errors(figure, rows)
    return Captioned(figure, _sentence(rows, unit, quantity), [_row(*stages, unit) for stages in rows.values()])


def _add_both(figure: go.Figure, rows: Mapping[str, tuple[Stage, Stage]], unit: str, quantity: str) -> None:
    for look, symbol, number in ((PREDICTED, MARKS[0], 0), (MEASURED, MARKS[2], 1)):
        stages = [pair[number] for pair in rows.values()]
        figure.add_scatter(
            x=[stage.value for stage in stages], y=list(rows), mode="markers", name=look.name,
            marker={"color": look.colour, "symbol": symbol, "size": 11, "line": {"color": INK, "width": 1}},
            error_x={
                "array": [stage.high - stage.value for stage in stages],
                "arrayminus": [stage.value - stage.low for stage in stages], "color": INK, "thickness": 1.2,
            },
            hovertemplate=f"%{{y}}, {look.name}: %{{x:.4g}} {unit}<extra></extra>",
            row=1, col=1,
        )  # fmt: skip
    least = min(stage.low for pair in rows.values() for stage in pair)
    most = max(stage.high for pair in rows.values() for stage in pair)
    axis: dict[str, Any] = {"title": {"text": f"{quantity} ({unit})"}}
    if most > WIDE * least:
        shown = [tick for tick in TICKS if least / 2 <= tick <= 2 * most]
        axis |= {"type": "log", "range": [math.log10(least / 1.3), math.log10(1.3 * most)], "tickvals": shown}
        axis |= {"ticktext": [f"{tick:g}" for tick in shown]}
    else:
        axis |= {"range": [0, 1.1 * most]}
    figure.update_xaxes(axis, row=1, col=1)


def _add_errors(figure: go.Figure, rows: Mapping[str, tuple[Stage, Stage]]) -> None:
    errors = [_error(*stages) for stages in rows.values()]
    ends = [_ends(*stages) for stages in rows.values()]
    figure.add_bar(
        orientation="h", x=errors, y=list(rows), marker=marker(TOTAL), name="error", showlegend=False,
        error_x={
            "array": [high - error for error, (_, high) in zip(errors, ends, strict=True)],
            "arrayminus": [error - low for error, (low, _) in zip(errors, ends, strict=True)],
            "color": INK, "thickness": 1.2, "width": 5,
        },
        hovertemplate="%{y}: %{x:+.2f} %<extra></extra>",
        row=1, col=2,
    )  # fmt: skip
    low, high = min(0.0, *(end for end, _ in ends)), max(0.0, *(end for _, end in ends))
    reach = max(high - low, 1.0)
    for name, error, (below, above) in zip(rows, errors, ends, strict=True):
        place, anchor, shift = (above, "left", 6) if error >= 0.0 else (below, "right", -6)
        where = {"x": place, "y": name, "xref": "x2", "yref": "y2", "xanchor": anchor, "xshift": shift}
        figure.add_annotation(**where, text=signed(error, "%"), showarrow=False)
    free = reach * (ROOM_EACH if min(errors) < 0.0 <= max(errors) else ROOM)
    room = [low - free if min(errors) < 0.0 else low, high + free if max(errors) >= 0.0 else high]
    title = "error of the prediction (%)"
    figure.update_xaxes(range=room, zeroline=True, zerolinecolor=INK, title_text=title, row=1, col=2)


def _error(predicted: Stage, measured: Stage) -> float:
    return 100.0 * (predicted.value - measured.value) / measured.value


def _ends(predicted: Stage, measured: Stage) -> tuple[float, float]:
    """The errors against the largest and the least repeat, in percent."""
    low, high = (100.0 * (predicted.value - end) / end for end in (measured.high, measured.low))
    return low, high


def _row(predicted: Stage, measured: Stage, unit: str) -> Row:
    return {
        "run": measured.name,
        f"predicted ({unit})": predicted.value,
        f"measured ({unit})": measured.value,
        "error": signed(_error(predicted, measured), "%"),
        "repeats": measured.repeats,
        f"least ({unit})": measured.low,
        f"largest ({unit})": measured.high,
    }


def _sentence(rows: Mapping[str, tuple[Stage, Stage]], unit: str, quantity: str) -> str:
    if not rows:
        return "No run was given, so nothing is drawn."
    errors = {name: _error(*stages) for name, stages in rows.items()}
    worst = max(errors, key=lambda name: abs(errors[name]))
    foreseen, told = rows[worst]
    off = f"{above_or_below(foreseen.value, told.value)} the measured"
    value = Stage(told.name, told.value, told.low, told.high, 1).told(unit)
    if len(rows) == 1:
        return f"The prediction of the {quantity} ({worst}) is {off} {value}."
    half = two_digits(float(np.median(np.abs(list(errors.values())))))
    return (
        f"Of {len(rows)} predictions of the {quantity}, {worst} is the furthest off: {off} {value}. "
        f"Half are within {half} %."
    )
