"""Measured times of a machine and the lines fitted to them: for each operation a panel, and below it what is off.

The axes of times and sizes are linear, so that a line is a line. The bars below show how far the line is off at each
size, which the panel of a large range hides for small sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from distsim.calibration.machine import Fit, MachineCalibration, Measured
from distsim.calibration.operations import OF_MODELS, Operation
from distsim.figures.captioned import Captioned, Row
from distsim.figures.html_page import PAGE, figure_html
from distsim.figures.theme import INK, MARKS, RUNS, SMALL, marker, template
from distsim.figures.wording import counted
from distsim.units import show

COLUMNS = 3  # at most
PANEL_PIXELS, BELOW_PIXELS, GAP_PIXELS = 190, 80, 74  # of times, of errors, and below each of the two
TOP_PIXELS, BOTTOM_PIXELS = 74, 54
MOST_TICKS = 4
NICE = [part * 10.0**power for power in range(-8, 12) for part in (1, 2, 5)]
LEAST_FAR_PCT = 5.0  # of an axis of errors
Axis = dict[str, Any]


def calibration(machine: MachineCalibration, *, operations: Collection[Operation] | None = None) -> Captioned:
    """Draws medians of repeats as marks, their quartiles as error bars, and the fits as lines.

    operations: those to draw, such as "all_reduce"; None: all that were measured.

    >>> import numpy as np
    >>> from distsim.calibration import fitted
    >>> found = [("point_to_point", None, 2, size, np.full(9, 1e-4 + size / 1e9)) for size in (1e4, 1e6)]
    >>> calibration(fitted(found, cores=2)).summary
    'Of 2 measured times, the one farthest from its line is 0 % off (point to point).'
    """
    if operations is not None:
        fits, measured = (tuple(one for one in found if one.operation in operations)
                          for found in (machine.fits, machine.measured))  # fmt: skip
        machine = machine.model_copy(update={"fits": fits, "measured": measured})
    titles = list(dict.fromkeys(fit.title for fit in machine.fits))
    numbers = sorted({found.workers for found in machine.measured})
    columns = min(COLUMNS, len(titles))
    rows = -(-len(titles) // columns)
    height = rows * (PANEL_PIXELS + BELOW_PIXELS + 2 * GAP_PIXELS) - GAP_PIXELS
    names = [*titles, *[""] * (rows * columns - len(titles))]
    figure = make_subplots(
        rows=2 * rows, cols=columns, horizontal_spacing=0.09, vertical_spacing=GAP_PIXELS / height,
        row_heights=[PANEL_PIXELS, BELOW_PIXELS] * rows,
        subplot_titles=[
            name
            for first in range(0, len(names), columns)
            for name in (*names[first : first + columns], *[""] * columns)
        ],
    )  # fmt: skip
    shown: set[int] = set()
    for fit in _drawn(machine):
        row, column = divmod(titles.index(fit.title), columns)
        number = numbers.index(fit.workers[0])
        for trace in _traces(machine, fit, number, legend=fit.workers[0] not in shown):
            figure.add_trace(trace, row=2 * row + 1, col=column + 1)
        figure.add_trace(_errors(machine, fit, number), row=2 * row + 2, col=column + 1)
        shown.add(fit.workers[0])
        for below, (horizontal, vertical) in enumerate(_axes(machine, fit, named=column == 0)):
            figure.update_xaxes(horizontal, row=2 * row + 1 + below, col=column + 1)
            figure.update_yaxes(vertical, row=2 * row + 1 + below, col=column + 1)
    figure.update_layout(template=template(), height=height + TOP_PIXELS + BOTTOM_PIXELS, barmode="group")
    figure.update_layout(margin={"t": TOP_PIXELS, "b": BOTTOM_PIXELS, "l": 10, "r": 10})
    figure.update_layout(legend={"y": 1.0 + 36 / height})
    figure.update_annotations(font_size=SMALL + 1)
    worst = _worst(machine)
    sentence = (
        f"Of {counted(len(machine.measured), 'measured time')}, the one farthest from its line is "
        f"{100 * worst.line.largest_miss:.0f} % off ({worst.title})."
    )
    return Captioned(figure, sentence, _table(machine))


def _drawn(machine: MachineCalibration) -> list[Fit]:
    """The fits for each number of workers; those over several numbers are not drawn."""
    return [fit for fit in machine.fits if len(fit.workers) == 1]


def _worst(machine: MachineCalibration) -> Fit:
    return max(_drawn(machine), key=lambda fit: fit.line.largest_miss)


def _of(machine: MachineCalibration, fit: Fit, workers: int | None = None) -> list[Measured]:
    """What was measured of the operation of a fit, with any number of workers or with this one."""
    return [
        found
        for found in machine.measured
        if (found.operation, found.model) == (fit.operation, fit.model) and workers in (None, found.workers)
    ]


def _traces(machine: MachineCalibration, fit: Fit, number: int, *, legend: bool) -> list[go.Scatter]:
    (workers,) = fit.workers
    points = _of(machine, fit, workers)
    x, y = np.array([found.amount for found in points]), np.array([found.seconds for found in points])
    low, high = np.array([found.quartiles for found in points]).T
    name = counted(workers, "worker")
    colour = RUNS[number % len(RUNS)].colour
    symbol = MARKS[number % len(MARKS)]
    look = {"color": colour, "symbol": symbol, "size": 8, "line": {"color": INK, "width": 0.6}}
    reach = np.array([x.min(), x.max()])
    return [
        go.Scatter(
            x=x, y=y, mode="markers", name=name, legendgroup=name, showlegend=legend,
            legendrank=workers, marker=look, cliponaxis=False,
            error_y={"array": high - y, "arrayminus": y - low, "color": colour, "thickness": 1},
            hovertemplate=f"{fit.title}, {name}<br>%{{x:.4s}}: %{{y:.3s}}s<extra></extra>",
        ),
        go.Scatter(
            x=reach, y=[machine.on_line(fit, workers, amount) for amount in reach], mode="lines", name=f"{name}, fit",
            legendgroup=name, showlegend=False, line={"color": colour, "width": 1.5}, hoverinfo="skip",
        ),
    ]  # fmt: skip


def _errors(machine: MachineCalibration, fit: Fit, number: int) -> go.Bar:
    """How far the line is off at each amount, in percent of what was measured."""
    (workers,) = fit.workers
    points = _of(machine, fit, workers)
    name = counted(workers, "worker")
    return go.Bar(
        x=[_amount(fit, found.amount) for found in points], y=[_error_pct(machine, fit, found) for found in points],
        name=f"{name}, off", legendgroup=name, showlegend=False, offsetgroup=name,
        marker=marker(RUNS[number % len(RUNS)]),
        hovertemplate=f"{fit.title}, {name}<br>%{{x}}: %{{y:+.0f}} %<extra></extra>",
    )  # fmt: skip


def _error_pct(machine: MachineCalibration, fit: Fit, found: Measured) -> float:
    return 100.0 * (machine.on_line(fit, found.workers, found.amount) - found.seconds) / found.seconds


def _amount(fit: Fit, amount: float) -> str:
    return f"{amount:g}" if fit.operation in OF_MODELS else show(amount, "byte")


def _axes(machine: MachineCalibration, fit: Fit, *, named: bool) -> list[tuple[Axis, Axis]]:
    """The horizontal and the vertical axis of an operation's two panels, which all numbers of workers share.

    named: whether the axis of errors has its title.
    """
    points = _of(machine, fit)
    amounts = sorted({found.amount for found in points})
    slowest = max(found.quartiles[1] for found in points)
    amount_of = f"{OF_MODELS[fit.operation]}s" if fit.operation in OF_MODELS else ""  # sizes have units
    upper = (
        _from_nothing(amounts[-1], lambda amount: _amount(fit, amount)),
        _from_nothing(slowest, lambda seconds: show(seconds, "second")),
    )
    order = [_amount(fit, amount) for amount in amounts]
    below = {"type": "category", "categoryorder": "array", "categoryarray": order, "title": {"text": amount_of}}
    alike = [one for one in _drawn(machine) if (one.operation, one.model) == (fit.operation, fit.model)]
    far = 1.15 * max(LEAST_FAR_PCT, 100.0 * max(one.line.largest_miss for one in alike))
    off = {"title": {"text": "off (%)" if named else ""}, "range": [-far, far], "zeroline": True, "nticks": 4}
    return [upper, (below, off)]


def _from_nothing(most: float, told: Callable[[float], str]) -> Axis:
    """A linear axis from 0 on, with a few round numbers."""
    step = next(nice for nice in NICE if nice * MOST_TICKS >= most)
    ticks = [step * number for number in range(MOST_TICKS + 1) if step * number <= 1.001 * most]
    return {"range": [0.0, 1.08 * most], "tickvals": ticks, "ticktext": [told(tick) if tick else "0" for tick in ticks]}


def _table(machine: MachineCalibration) -> list[Row]:
    lines = {(fit.operation, fit.model, fit.workers): fit for fit in machine.fits}
    rows: list[Row] = []
    for found in machine.measured:
        fit = lines[found.operation, found.model, (found.workers,)]
        told = machine.on_line(fit, found.workers, found.amount)
        rows.append(
            {
                "operation": fit.title,
                "workers": found.workers,
                "bytes, samples, buckets or units": int(found.amount),
                "measured (ms)": 1e3 * found.seconds,
                "line (ms)": 1e3 * told,
                "line off by": f"{_error_pct(machine, fit, found):+.0f} %",
            }
        )
    return rows


def page(machine: MachineCalibration) -> str:
    """An HTML page with the figure, its table and the warnings; the page needs no other file and no network."""
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in machine.warnings())
    notes = f'<ul class="notes">{warnings}</ul>' if warnings else ""
    links = f", with {machine.links}" if machine.emulated else ""
    return PAGE.substitute(
        plotly=get_plotlyjs(), title="calibration", heading="Calibration",
        lead=f"Measured times of exchanges, messages and compute on this machine{links}, and the lines fitted to them.",
        sections=f"<section>{notes}{figure_html('calibration', calibration(machine))}</section>",
    )  # fmt: skip
