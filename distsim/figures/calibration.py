"""Measured times of a machine and the lines fitted to them: a panel for each operation, both axes logarithmic."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from distsim.calibration.machine import Fit, MachineCalibration
from distsim.calibration.operations import OF_MODELS
from distsim.figures.captioned import Captioned, Row
from distsim.figures.html_page import PAGE, figure_html
from distsim.figures.theme import INK, MARKS, RUNS, SMALL, template
from distsim.figures.wording import counted
from distsim.units import show

COLUMNS = 3
ROW_PIXELS = 260
LINE_POINTS = 30
MARGINS = {"t": 80, "b": 50, "l": 10, "r": 10}
DECADES = [10.0**power for power in range(1, 11)]  # tick marks, in bytes
SECONDS = [part * 10.0**power for power in range(-7, 3) for part in (1, 2, 5)]


def calibration(machine: MachineCalibration) -> Captioned:
    """Draws medians of repeats as marks, their quartiles as error bars, and the fits as lines.

    >>> import numpy as np
    >>> from distsim.calibration import fitted
    >>> found = [("point_to_point", None, 2, size, np.full(9, 1e-4 + size / 1e9)) for size in (1e4, 1e6)]
    >>> calibration(fitted(found, cores=2)).summary
    'Of 2 measured times, the one farthest from its line is 0 % off (point to point).'
    """
    titles = list(dict.fromkeys(fit.title for fit in machine.fits))
    numbers = sorted({found.workers for found in machine.measured})
    rows = -(-len(titles) // COLUMNS)
    figure = make_subplots(
        rows=rows, cols=COLUMNS, subplot_titles=titles, horizontal_spacing=0.09, vertical_spacing=0.3 / rows
    )
    shown: set[int] = set()
    for fit in machine.fits:
        if len(fit.workers) > 1:
            continue  # a fit over all numbers of workers; the fit for each number is drawn instead
        row, column = (place + 1 for place in divmod(titles.index(fit.title), COLUMNS))
        for trace in _traces(machine, fit, numbers.index(fit.workers[0]), legend=fit.workers[0] not in shown):
            figure.add_trace(trace, row=row, col=column)
        shown.add(fit.workers[0])
        amounts = sorted({found.amount for found in machine.measured if found.operation == fit.operation})
        if fit.operation in OF_MODELS:
            unit = "samples" if fit.operation == "compute" else "buckets"
            ticks = {"tickvals": amounts, "ticktext": [f"{amount:g}" for amount in amounts], "title": unit}
        else:
            ticks = {"tickvals": DECADES, "ticktext": [show(size, "byte") for size in DECADES], "title": "size"}
        figure.update_xaxes(ticks, row=row, col=column)
    figure.update_layout(template=template(), height=ROW_PIXELS * rows + 60, margin=MARGINS)
    figure.update_layout(legend={"y": 1.0 + 45 / (ROW_PIXELS * rows - 70)})
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log", tickvals=SECONDS, ticktext=[show(seconds, "second") for seconds in SECONDS])
    figure.update_annotations(font_size=SMALL + 1)
    worst = max(machine.fits, key=lambda fit: fit.line.largest_miss)
    sentence = (
        f"Of {len(machine.measured)} measured times, the one farthest from its line is "
        f"{100 * worst.line.largest_miss:.0f} % off ({worst.title})."
    )
    return Captioned(figure, sentence, _table(machine))


def _traces(machine: MachineCalibration, fit: Fit, number: int, *, legend: bool) -> list[go.Scatter]:
    (workers,) = fit.workers
    points = [
        found
        for found in machine.measured
        if (found.operation, found.model, found.workers) == (fit.operation, fit.model, workers)
    ]
    x, y = np.array([found.amount for found in points]), np.array([found.seconds for found in points])
    low, high = np.array([found.quartiles for found in points]).T
    name = counted(workers, "worker")
    colour = RUNS[number % len(RUNS)].colour
    symbol = MARKS[number % len(MARKS)]
    marker = {"color": colour, "symbol": symbol, "size": 8, "line": {"color": INK, "width": 0.6}}
    reach = np.geomspace(x.min(), x.max(), LINE_POINTS)
    return [
        go.Scatter(
            x=x, y=y, mode="markers", name=name, legendgroup=name, showlegend=legend,
            legendrank=workers, marker=marker,
            error_y={"array": high - y, "arrayminus": y - low, "color": colour, "thickness": 1},
            hovertemplate=f"{fit.title}, {name}<br>%{{x:.4s}}: %{{y:.3s}}s<extra></extra>",
        ),
        go.Scatter(
            x=reach, y=[machine.on_line(fit, workers, amount) for amount in reach], mode="lines", name=f"{name}, fit",
            legendgroup=name, showlegend=False, line={"color": colour, "width": 1.5}, hoverinfo="skip",
        ),
    ]  # fmt: skip


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
                "bytes, samples or buckets": int(found.amount),
                "measured (ms)": 1e3 * found.seconds,
                "line (ms)": 1e3 * told,
                "line off by": f"{100 * (told - found.seconds) / found.seconds:+.0f} %",
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
