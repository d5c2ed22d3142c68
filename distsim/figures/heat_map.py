"""The map of a sweep: the axes are two varied keys, and each cell shows a metric as a colour and a number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row, shown
from distsim.figures.theme import INK, MAGNITUDE, SMALL, template
from distsim.figures.wording import counted
from distsim.metrics import METRICS
from distsim.sweep import RESULTS

METRIC_OF = {metric.column: metric for metric in METRICS}
# For each reason why a cell has no number: the mark, and the predicate for one combination and for several.
MISSING = {
    "impossible": ("x-thin", "is impossible", "are impossible"),
    "does not apply": ("line-ew", "has no such metric", "have no such metric"),
    "not run": ("circle-open", "was not run", "were not run"),
}
FAR_APART = 30  # the most over the least; beyond this ratio, colours follow the logarithm
MOST_NUMBERS = 300  # a map of more cells shows colours without numbers
MOST_NAMED = 24  # labels on an axis
CELL_PIXELS = 34
MARGINS = {"t": 50, "b": 54, "l": 10, "r": 10}

Cell = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """The cells of the map. down, right: the keys on the axes, "" for none; ys, xs: their values from the upper left.

    numbers: in `unit`, shape (ys, xs); nan where a cell has no number. missing: for such a cell, the reason (a key of
    `MISSING`) and the text to show.
    """

    name: str
    unit: str
    down: str
    right: str
    ys: list[str]
    xs: list[str]
    numbers: Floats
    missing: dict[Cell, tuple[str, str]]

    @property
    def title(self) -> str:
        """The metric with its unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def found(self) -> Floats:
        """All numbers, without nan."""
        return self.numbers[~np.isnan(self.numbers)]

    def where(self, cell: Cell) -> str:
        """A cell's combination in words."""
        keys = ((self.down, self.ys[cell[0]]), (self.right, self.xs[cell[1]]))
        return " and ".join(f"{key} = {value}" for key, value in keys if key)

    def extremes(self) -> tuple[Cell, Cell] | None:
        """The cells of the least and of the largest number; None where all numbers are equal."""
        if not len(self.found) or self.found.min() == self.found.max():
            return None
        (low_y, low_x), (high_y, high_x) = (
            np.unravel_index(int(place), self.numbers.shape)
            for place in (np.nanargmin(self.numbers), np.nanargmax(self.numbers))
        )
        return (int(low_y), int(low_x)), (int(high_y), int(high_x))


def heat_map(rows: Sequence[Mapping[str, Any]], metric: str = "step_seconds_median") -> Captioned:
    """Draws one `metric` of the rows that `distsim.sweep.sweep` returns or `distsim sweep --out` writes.

    The first varied key goes down and the second goes right; a key with one value is left out. A mark shows that a
    combination is impossible, was not run, or does not have the metric. The least number has an outline.

    Raises InputError where there is no row, the metric is unknown, more than two keys vary, or two rows hold the same
    combination.

    >>> import distsim
    >>> from distsim.sweep import sweep
    >>> found = sweep(distsim.example("backup_server"), {"policy.backups": [0, 1, 5], "compute.cv": [0.1, 0.6]})
    >>> heat_map(found, "idle_share").summary
    'Idle share of 4 combinations: the least is 4.84 %, at policy.backups = 1 and compute.cv = 0.1; the most is \
35.9 %, at policy.backups = 0 and compute.cv = 0.6. 2 are impossible.'
    """
    if metric not in METRIC_OF:
        cure = f"take one of {', '.join(METRIC_OF)}"
        raise InputError.of("heat_map(metric)", metric, "is not a metric of a sweep", cure)
    if not rows:
        raise InputError.of("heat_map(rows)", list(rows), "there is nothing to draw", "pass the rows of a sweep")
    grid = _grid(rows, metric)
    figure = go.Figure([_cells(grid), *_marks(grid)], _layout(grid))
    return Captioned(figure, _sentence(grid), _table(grid))


def _grid(rows: Sequence[Mapping[str, Any]], metric: str) -> Grid:
    down, right = _varied(rows)
    ys, xs = ({value: place for place, value in enumerate(dict.fromkeys(_text(row, key) for row in rows))}
              for key in (down, right))  # fmt: skip
    found = METRIC_OF[metric]
    numbers = np.full((len(ys), len(xs)), np.nan)
    missing = {(y, x): ("not run", "not run") for y in range(len(ys)) for x in range(len(xs))}
    told: set[Cell] = set()
    for row in rows:
        cell = ys[_text(row, down)], xs[_text(row, right)]
        if cell in told:
            twice = " and ".join(f"{key} = {_text(row, key)}" for key in (down, right) if key)
            cure = "keep one row of each combination"
            raise InputError.of("heat_map(rows)", twice or len(rows), "stands in more than one row", cure)
        told.add(cell)
        error, value = row.get("error"), _number(row.get(metric))
        if isinstance(error, str) and error:
            missing[cell] = ("impossible", error)
        elif value is None:
            missing[cell] = ("does not apply", "does not apply")
        else:
            missing.pop(cell, None)
            numbers[cell] = found.unit.scale * value
    return Grid(found.title, found.unit.name, down, right, list(ys), list(xs), numbers, missing)


def _varied(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The keys on the axes, down and right; "" for an axis without a key."""
    keys = [key for key in rows[0] if key not in RESULTS]
    found = [key for key in keys if len({_text(row, key) for row in rows}) > 1] or keys[:1]
    if len(found) > 2:
        cure = "pass the rows of one value of each other key"
        raise InputError.of("heat_map(rows): varied", ", ".join(found), "must be two keys, one for each axis", cure)
    if len(found) == 2:
        return found[0], found[1]
    return "", found[0] if found else ""


def _text(row: Mapping[str, Any], key: str) -> str:
    return str(row.get(key, "")) if key else ""


def _number(value: Any) -> float | None:
    """A metric of a row; None where a file has an empty field or nan."""
    if value is None or value == "":
        return None
    number = float(value)
    return None if math.isnan(number) else number


def _cells(grid: Grid) -> go.Heatmap:
    """The colours of the cells, and the numbers if there are few cells."""
    few = grid.numbers.size <= MOST_NUMBERS
    by_logarithm = len(grid.found) > 0 and 0.0 < FAR_APART * grid.found.min() < grid.found.max()
    z = np.log10(grid.numbers) if by_logarithm else grid.numbers
    ticks = np.linspace(np.nanmin(z), np.nanmax(z), 5) if len(grid.found) else np.empty(0)
    texts = [["" if math.isnan(number) else _rounded(number) for number in row] for row in grid.numbers.tolist()]
    hover = [
        [f"{grid.where((y, x))}<br>{grid.title}: {text}" for x, text in enumerate(row)] for y, row in enumerate(texts)
    ]
    return go.Heatmap(
        z=z, name=grid.title, colorscale=MAGNITUDE, showscale=not few, xgap=1 if few else 0, ygap=1 if few else 0,
        text=texts if few else None, texttemplate="%{text}", textfont={"color": INK, "size": SMALL + 1},
        hoverongaps=False, hovertext=hover, hovertemplate="%{hovertext}<extra></extra>",
        colorbar={
            "thickness": 14, "tickvals": ticks,
            "ticktext": [_rounded(10**tick if by_logarithm else tick) for tick in ticks.tolist()],
        },
    )  # fmt: skip


def _rounded(number: float) -> str:
    return shown(float(f"{number:.3g}"))


def _marks(grid: Grid) -> Iterator[go.Scatter]:
    """Marks of the cells without a number, one look for each reason."""
    size = 12 if grid.numbers.size <= MOST_NUMBERS else 5
    for reason, (symbol, *_) in MISSING.items():
        cells = [cell for cell, (found, _) in grid.missing.items() if found == reason]
        if cells:
            yield go.Scatter(
                x=[x for _, x in cells], y=[y for y, _ in cells], mode="markers", name=reason, showlegend=True,
                marker={"symbol": symbol, "size": size, "color": INK, "line": {"color": INK, "width": 1.5}},
                hovertext=[f"{grid.where(cell)}<br>{grid.missing[cell][1]}" for cell in cells],
                hovertemplate="%{hovertext}<extra></extra>",
            )  # fmt: skip


def _layout(grid: Grid) -> dict[str, Any]:
    height = float(np.clip(CELL_PIXELS * len(grid.ys), 90, 600)) + MARGINS["t"] + MARGINS["b"]
    extremes = grid.extremes()
    return {
        "template": template(), "height": height, "margin": MARGINS, "legend": {"x": 1.0, "xanchor": "right"},
        "xaxis": _axis(grid.right, grid.xs) | {"range": [-0.5, len(grid.xs) - 0.5]},
        "yaxis": _axis(grid.down, grid.ys) | {"range": [len(grid.ys) - 0.5, -0.5]},
        "shapes": [_outline(extremes[0])] if extremes else [],
        "annotations": [
            {
                "text": f"<b>{grid.title}</b>", "x": 0.0, "xref": "x domain", "xanchor": "left", "showarrow": False,
                "y": 1.0, "yref": "y domain", "yanchor": "bottom", "yshift": 4,
            }
        ],
    }  # fmt: skip


def _axis(key: str, values: list[str]) -> dict[str, Any]:
    """An axis that names every value, or every n-th value if there are many."""
    places = range(0, len(values), -(-len(values) // MOST_NAMED))
    return {
        "title": {"text": key}, "tickvals": list(places), "ticktext": [values[place] for place in places],
        "showgrid": False, "showticklabels": bool(key),
    }  # fmt: skip


def _outline(cell: Cell) -> dict[str, Any]:
    y, x = cell
    corners = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
    return {"type": "rect", "name": "least", "line": {"color": INK, "width": 2.5}, **corners}


def _table(grid: Grid) -> list[Row]:
    """The map as a table: a row for each value of the key `down`, a column for each value of the key `right`."""
    columns = [f"{grid.right} = {x}" if grid.right else grid.title for x in grid.xs]
    return [
        {
            grid.down or "figure": y or grid.title,
            **{column: None if math.isnan(number) else number for column, number in zip(columns, numbers, strict=True)},
        }
        for y, numbers in zip(grid.ys, grid.numbers.tolist(), strict=True)
    ]


def _sentence(grid: Grid) -> str:
    count = len(grid.found)
    heading = f"{grid.name.capitalize()} of {counted(count, 'combination')}"
    extremes = grid.extremes()
    if extremes:
        least, most = (f"{_told(grid, grid.numbers[cell])}, at {grid.where(cell)}" for cell in extremes)
        parts = [f"{heading}: the least is {least}; the most is {most}."]
    elif count:
        parts = [f"{heading}: {_told(grid, grid.found[0])}{' in each' if count > 1 else ''}."]
    else:
        parts = [f"{heading}, so no number is drawn."]
    for reason, (_, of_one, of_more) in MISSING.items():
        number = sum(found == reason for found, _ in grid.missing.values())
        if number:
            parts.append(f"{number} {of_one if number == 1 else of_more}.")
    return " ".join(parts)


def _told(grid: Grid, number: float) -> str:
    return f"{_rounded(float(number))} {grid.unit}".rstrip()
