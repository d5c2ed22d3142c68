"""A map of the result of training, with a number in the cell of each batch size and learning rate.

A solid outline marks the best rate of each batch. A dotted outline marks the linear scaling rule: k times the
smallest batch takes k times the best rate of that batch (Goyal et al. 2017, Accurate, Large Minibatch SGD).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.loss_lines import spread
from distsim.figures.theme import DROPPED, INK, MAGNITUDE, SMALL, template
from distsim.learning.curve import Curve
from distsim.learning.rates import scaled
from distsim.statistics import interval

Quantity = Literal["accuracy", "loss"]
Cell = tuple[int, float]  # samples per update, learning rate
TITLES: dict[Quantity, str] = {"accuracy": "test accuracy (%)", "loss": "loss over all samples"}
FAR_APART = 30.0  # the largest loss over the least; beyond this ratio colours follow the logarithm
MOST_NUMBERS = 150  # a map of more cells shows colours without numbers
MOST_NAMED = 24  # labels on an axis
ROW_PIXELS, LEAST_PIXELS, MOST_PIXELS = 38, 120, 600
MARGINS = {"t": 50, "b": 55, "l": 10, "r": 10}
SAME = 1e-6  # relative difference below which two rates count as equal


@dataclass(frozen=True)
class CellResult:
    """The result of the runs of one cell. value: the mean over runs that did not diverge, NaN where all diverged.

    low, high: the 95 % interval of the mean; None for fewer than two runs.
    """

    runs: int
    diverged: int
    value: float
    low: float | None
    high: float | None


def batch_grid(curves: Mapping[Cell, Curve | Sequence[Curve]], quantity: Quantity = "accuracy") -> Captioned:
    """Draws a column for each batch size and a row for each learning rate, with the highest rate on top.

    curves: by (samples per update, learning rate), the curve that `distsim.learning.replay` returned, or one curve for
    each of several seeds. The last value of each curve counts. A run has diverged where its last loss is not finite or
    is above its first loss; a mark shows the cells with such runs.

    Raises InputError where a cell has no curve, or there is no cell.

    >>> from distsim.learning.delays import plain
    >>> from distsim.learning.optimizers import Sgd
    >>> from distsim.learning.quadratic import Quadratic
    >>> from distsim.learning.replay import replay
    >>> runs = {
    ...     (batch, rate): replay(plain(50, batch), Quadratic(samples=512), Sgd(rate), points=1)
    ...     for batch in (1, 8) for rate in (0.03, 0.3, 3.0)
    ... }
    >>> batch_grid(runs, "loss").summary.split(". ")[-1]
    'In 2 of 6 cells runs diverge.'
    """
    cells = {cell: _found(found, quantity) for cell, found in curves.items()}
    if not cells or not all(found.runs for found in cells.values()):
        raise InputError.of(
            "batch_grid(curves)", dict(curves), "there is nothing to draw", "pass at least one curve of each cell"
        )
    if quantity not in TITLES:
        raise InputError.of("batch_grid(quantity)", quantity, f"must be one of {', '.join(TITLES)}", 'take "loss"')
    batches, rates = (sorted(set(values)) for values in zip(*cells, strict=True))
    best = _best(cells, quantity)
    ruled = _by_the_linear_rule(cells, best)
    figure = go.Figure()
    figure.add_trace(_map(cells, batches, rates, quantity))
    _add_diverged(figure, cells, batches, rates)
    _add_outlines(figure, batches, rates, best, "best rate of its batch", "solid")
    _add_outlines(figure, batches, rates, ruled, "by the linear rule", "dot")
    height = min(max(ROW_PIXELS * len(rates), LEAST_PIXELS), MOST_PIXELS) + MARGINS["t"] + MARGINS["b"]
    figure.update_layout(template=template(), height=height)
    figure.update_layout(margin=MARGINS)
    for axis, values, title in (
        (figure.layout.xaxis, batches, "samples per update"), (figure.layout.yaxis, rates, "learning rate"),
    ):  # fmt: skip
        step = -(-len(values) // MOST_NAMED)
        axis.update(
            title_text=title, showgrid=False, range=[-0.5, len(values) - 0.5],
            tickvals=list(range(0, len(values), step)), ticktext=[f"{value:.4g}" for value in values[::step]],
        )  # fmt: skip
    return Captioned(figure, _sentence(cells, best, ruled, quantity), _table(cells, quantity))


def _found(curves: Curve | Sequence[Curve], quantity: Quantity) -> CellResult:
    runs = [curves] if isinstance(curves, Curve) else list(curves)
    # The comparison is False for a loss that is NaN.
    good = [run for run in runs if run.loss[-1] <= run.loss[0]]
    values = [100.0 * run.accuracy[-1] if quantity == "accuracy" else float(run.loss[-1]) for run in good]
    if len(values) < 2:
        return CellResult(len(runs), len(runs) - len(good), float(values[0]) if values else math.nan, None, None)
    mean, low, high = interval(values).within(0.0, 100.0 if quantity == "accuracy" else math.inf)
    return CellResult(len(runs), len(runs) - len(good), mean, low, high)


def _best(cells: Mapping[Cell, CellResult], quantity: Quantity) -> list[Cell]:
    """For each batch, the rate with the best value among the rates at which no run diverged."""
    best: dict[int, Cell] = {}
    sign = 1.0 if quantity == "accuracy" else -1.0
    for cell in sorted(cells):
        found = cells[cell]
        if found.diverged or math.isnan(found.value):
            continue
        if cell[0] not in best or sign * found.value > sign * cells[best[cell[0]]].value:
            best[cell[0]] = cell
    return list(best.values())


def _by_the_linear_rule(cells: Mapping[Cell, CellResult], best: Sequence[Cell]) -> list[Cell]:
    """The cells of larger batches at the rates that follow from the smallest batch's best rate."""
    if not best:
        return []
    reference, rate = best[0]
    return [
        cell
        for cell in sorted(cells)
        if cell[0] > reference and math.isclose(cell[1], scaled(rate, cell[0], reference), rel_tol=SAME)
    ]


def _map(cells: Mapping[Cell, CellResult], batches: list[int], rates: list[float], quantity: Quantity) -> go.Heatmap:
    numbers = np.array(
        [[cells[batch, rate].value if (batch, rate) in cells else np.nan for batch in batches] for rate in rates]
    )
    few = numbers.size <= MOST_NUMBERS
    texts = [["" if math.isnan(number) else _rounded(number, quantity) for number in row] for row in numbers.tolist()]
    hover = [
        [f"batch {batch}, rate {rate:.4g}<br>{_told(cells.get((batch, rate)), quantity)}" for batch in batches]
        for rate in rates
    ]
    by_logarithm = quantity == "loss" and FAR_APART < spread(numbers[~np.isnan(numbers)]) < math.inf
    return go.Heatmap(
        z=np.log10(numbers) if by_logarithm else numbers, name=TITLES[quantity],
        colorscale=MAGNITUDE, reversescale=quantity == "loss", showscale=not few,
        text=texts if few else None, texttemplate="%{text}", textfont={"color": INK, "size": SMALL + 1},
        xgap=1 if few else 0, ygap=1 if few else 0, hovertext=hover, hovertemplate="%{hovertext}<extra></extra>",
        hoverongaps=False,
        colorbar={
            "thickness": 14,
            "title": {"text": f"{TITLES[quantity]}{', power of 10' if by_logarithm else ''}", "side": "right"},
        },
    )  # fmt: skip


def _rounded(number: float, quantity: Quantity) -> str:
    return f"{number:.1f}" if quantity == "accuracy" else f"{number:.3g}"


def _told(found: CellResult | None, quantity: Quantity) -> str:
    """The result of a cell in words."""
    if found is None:
        return "not run"
    text = "" if math.isnan(found.value) else f"{TITLES[quantity]}: {_rounded(found.value, quantity)}"
    if found.low is not None and found.high is not None:
        text += f" ({_rounded(found.low, quantity)} to {_rounded(found.high, quantity)})"
    return text + f"<br>{found.diverged} of {found.runs} runs diverged" * bool(found.diverged)


def _add_diverged(figure: go.Figure, cells: Mapping[Cell, CellResult], batches: list[int], rates: list[float]) -> None:
    """A cross where all runs of a cell diverged; a triangle beside the number where some did."""
    for name, symbol, all_of_them in (("diverges", "x", True), ("diverges for some seeds", "triangle-up", False)):
        marked = [
            cell for cell, found in cells.items() if found.diverged and math.isnan(found.value) == all_of_them
        ]  # fmt: skip
        if not marked:
            continue
        shift = 0.0 if all_of_them else 0.36
        figure.add_scatter(
            x=[batches.index(batch) + shift for batch, _ in marked], y=[rates.index(rate) for _, rate in marked],
            mode="markers", name=name, hovertext=[f"batch {batch}, rate {rate:.4g}" for batch, rate in marked],
            hovertemplate=f"%{{hovertext}}: {name}<extra></extra>",
            marker={
                "symbol": symbol, "size": 10 if len(cells) <= MOST_NUMBERS else 5, "color": DROPPED,
                "line": {"color": INK, "width": 1},
            },
        )  # fmt: skip


def _add_outlines(
    figure: go.Figure, batches: list[int], rates: list[float], cells: Sequence[Cell], name: str, dash: str
) -> None:
    """Rectangles around the cells, as one trace with gaps."""
    if not cells:
        return
    reach = 0.47 if dash == "solid" else 0.41
    x: list[Any] = []
    y: list[Any] = []
    for batch, rate in cells:
        column, row = batches.index(batch), rates.index(rate)
        x += [column - reach, column + reach, column + reach, column - reach, column - reach, None]
        y += [row - reach, row - reach, row + reach, row + reach, row - reach, None]
    figure.add_scatter(
        x=x, y=y, mode="lines", name=name, hoverinfo="skip",
        line={"color": INK, "width": 2.5 if dash == "solid" else 1.5, "dash": dash},
    )  # fmt: skip


def _table(cells: Mapping[Cell, CellResult], quantity: Quantity) -> list[Row]:
    return [
        {
            "samples per update": batch,
            "learning rate": rate,
            "runs": found.runs,
            "diverged": found.diverged,
            TITLES[quantity]: None if math.isnan(found.value) else found.value,
            "95 % from": found.low,
            "to": found.high,
        }
        for (batch, rate), found in sorted(cells.items())
    ]


def _sentence(cells: Mapping[Cell, CellResult], best: Sequence[Cell], ruled: Sequence[Cell], quantity: Quantity) -> str:
    text = []
    if best:
        unit = " %" if quantity == "accuracy" else ""
        told = [
            f"{cells[batch, rate].value:.3g}{unit} with batches of {batch} (at a rate of {rate:.3g})"
            for batch, rate in dict.fromkeys([best[0], best[-1]])
        ]
        text.append(f"At the best rate the {'test accuracy' if unit else 'loss'} is {' and '.join(told)}.")
    if ruled:
        text.append(
            f"The linear rule leads to the best rate in {sum(cell in best for cell in ruled)} of {len(ruled)} cells."
        )
    diverged = sum(found.diverged > 0 for found in cells.values())
    if diverged:
        text.append(f"In {diverged} of {len(cells)} cells runs diverge.")
    return " ".join(text)
