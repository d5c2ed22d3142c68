"""A learner's guesses of several quantities beside the measurements: each as a multiple of what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from distsim.figures.captioned import Captioned, Row
from distsim.figures.guess_formula_simulation_measurement import LOOKS, Given, Stage
from distsim.figures.theme import INK, LABEL_PAPER, MARKS, template
from distsim.figures.wording import above_or_below, counted, enumerated

SYMBOLS = dict(zip(LOOKS, MARKS, strict=False))
BESIDE = ("guess", "formula", "simulation")  # what is drawn as a multiple of the measurement
SIZES = {"guess": 17, "formula": 11, "simulation": 10}  # a guess stays visible behind an equal prediction
ROW_PIXELS, AROUND_PIXELS, LEAST_PIXELS = 48, 120, 210
ABOVE_PIXELS = 10  # from the middle of a row to its text, which leaves the whole width to the axis
TENS = [10.0**power for power in range(-3, 4)]
TICKS = [part * ten for ten in TENS for part in (1, 2, 5)]
TENS_FROM = 30.0  # of the axis, which then has powers of ten only
MOST_REACH = 1000.0  # what is farther off stands at the edge
MANY_TIMES = 10.0  # from here on, not in percent
HALVES = 4  # from so many quantities on, the first half of the list is compared with the second
LEAST_REACH = 2.0  # the axis goes at least from a half of the measurement to twice as much


def guesses(quantities: Mapping[str, Mapping[str, Given]]) -> Captioned:
    """Draws guess, formula and simulation of each quantity as a multiple of the measurement, on a logarithmic axis.

    quantities: by name with its unit, in the order in which they were guessed, the stages "guess", "formula",
    "simulation" and "measurement": each a number, the numbers of repeats, of which the median counts, or None. A number
    has a multiple where it and the measurement are above 0.

    Raises InputError where a number is not finite.

    >>> shown = guesses({"step time (ms)": {"guess": 60.0, "simulation": 92.0, "measurement": [91.0, 92.0, 99.0]}})
    >>> shown.summary.split(". ")[0]
    'Of 1 quantity, the guess was off by a factor of 1.53 and the simulation by 1'
    """
    rows = {name: _stages(given) for name, given in quantities.items()}
    figure = go.Figure(layout=_layout(rows))
    for stage in BESIDE:
        known = {name: found for name, row in rows.items() if (found := multiple(row, stage)) is not None}
        if known:
            figure.add_scatter(
                x=np.clip([*known.values()], 1 / MOST_REACH, MOST_REACH), y=list(known), mode="markers", name=stage,
                customdata=list(known.values()),
                marker={
                    "color": LOOKS[stage].colour, "symbol": SYMBOLS[stage], "size": SIZES[stage],
                    "line": {"color": INK, "width": 1.4},
                },
                hovertemplate=f"%{{y}}, {stage}: %{{customdata:.3g}} times the measurement<extra></extra>",
            )  # fmt: skip
    return Captioned(figure, _sentence(rows), [_row(name, row) for name, row in rows.items()])


def _stages(given: Mapping[str, Given]) -> dict[str, Stage]:
    return {stage: Stage.of(stage, values) for stage, values in given.items() if values is not None}


def multiple(row: Mapping[str, Stage], stage: str) -> float | None:
    """A stage's value over the measured value; None where one of the two is missing or not above 0."""
    value, measured = (row[name].value if name in row else 0.0 for name in (stage, "measurement"))
    return value / measured if value > 0.0 and measured > 0.0 else None


def _factors(rows: Sequence[Mapping[str, Stage]], stage: str) -> list[float]:
    """By how much a stage is off, too large or too small alike: 2 for twice or half of the measurement."""
    found = (multiple(row, stage) for row in rows)
    return [max(one, 1.0 / one) for one in found if one is not None]


def _layout(rows: Mapping[str, Mapping[str, Stage]]) -> dict[str, Any]:
    farthest = max([LEAST_REACH, *(factor for stage in BESIDE for factor in _factors([*rows.values()], stage))])
    reach = min(farthest, MOST_REACH)
    ends = [math.log10(1.25 * reach) * side for side in (-1, 1)]
    ticks = [tick for tick in (TICKS if reach < TENS_FROM else TENS) if ends[0] <= math.log10(tick) <= ends[1]]
    height = max(LEAST_PIXELS, ROW_PIXELS * len(rows) + AROUND_PIXELS)
    exact = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
    return {
        "template": template(), "height": height, "showlegend": True, "margin": {"t": 40, "b": 50, "l": 14, "r": 14},
        "legend": {"y": 1.0 + 8 / (height - 90)},
        "xaxis": {
            "title": {"text": "times the measurement (1: as measured)"}, "type": "log", "range": ends,
            "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks],
        },
        "yaxis": {
            "categoryorder": "array", "categoryarray": list(rows), "range": [max(len(rows), 1) - 0.5, -0.7],
            "showticklabels": False, "ticks": "",
        },
        "shapes": [exact | {"line": {"color": INK, "width": 1.5, "dash": "dot"}, "layer": "between"}],
        "annotations": [
            {
                "x": 0.0, "xref": "paper", "xanchor": "left", "y": name, "yanchor": "bottom", "yshift": ABOVE_PIXELS,
                "text": name if _off(row) == "–" else f"{name}, guess {_off(row)}", "showarrow": False,
                "bgcolor": LABEL_PAPER, "borderpad": 1,
            }
            for name, row in rows.items()
        ],
    }  # fmt: skip


def _off(row: Mapping[str, Stage]) -> str:
    """How far the guess is off, in words."""
    if "guess" not in row or not row.get("measurement") or not row["measurement"].value:
        return "–"
    times = row["guess"].value / row["measurement"].value
    return f"{times:.3g} times" if times >= MANY_TIMES else above_or_below(times, 1.0)


def _row(name: str, row: Mapping[str, Stage]) -> Row:
    values = {stage: row[stage].value if stage in row else None for stage in LOOKS}
    return {"quantity": name, **values, "the guess is": _off(row)}


def _sentence(rows: Mapping[str, Mapping[str, Stage]]) -> str:
    off = {stage: factors for stage in BESIDE if (factors := _factors([*rows.values()], stage))}
    if not off:
        return "No guess has been compared with a measurement yet."
    known = {name: row for name, row in rows.items() if multiple(row, "guess") is not None}
    told = [f"the {stage} {'was off ' * (not place)}by {'a factor of ' * (not place)}{_median(factors)}"
            for place, (stage, factors) in enumerate(off.items())]  # fmt: skip
    middle = " in the median" if len(rows) > 1 else ""
    found = [f"Of {len(rows)} quantit{'y' if len(rows) == 1 else 'ies'}, {enumerated(told)}{middle}."]
    if known:
        name = list(known)[-1]
        found.append(f"The last guess of the list, {name}, is {_off(rows[name])} the measurement.")
    if without := sum("guess" in row for row in rows.values()) - len(known):
        found.append(f"Of {counted(without, 'guess')} there is no factor, since one of the two numbers is not above 0.")
    if len(known) >= HALVES:
        half = len(known) // 2
        early, late = (
            _median(_factors(part, "guess")) for part in ([*known.values()][:half], [*known.values()][half:])
        )
        found.append(f"The first half of the list was guessed with a factor of {early}, the second with {late}.")
    return " ".join(found)


def _median(factors: Sequence[float]) -> str:
    """The middle factor; between two, the one as many times above the one as below the other."""
    return f"{np.exp(np.median(np.log(factors))):.3g}"
