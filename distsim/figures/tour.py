"""The four stages of a chapter on one axis: guess, formula, simulation, measurement."""

from __future__ import annotations

import plotly.graph_objects as go

from distsim.figures.captioned import Captioned, Row, shown
from distsim.figures.comparison import signed
from distsim.figures.theme import FORMULA, GUESS, INK, MEASURED, PAPER, PREDICTED, marker, template

STAGES = {"guess": GUESS, "formula": FORMULA, "simulation": PREDICTED, "measurement": MEASURED}


def guess_formula_simulation_measurement(
    guess: float | None,
    formula: float | None,
    simulation: float | None,
    measurement: float | None,
    unit: str,
    quantity: str = "step time",
) -> Captioned:
    """Four bars of one quantity in `unit`, the measurement drawn through as a line; None: not there yet.

    >>> shown = guess_formula_simulation_measurement(60.0, 81.5, 92.0, 92.4, "ms")
    >>> shown.summary.split("; ")[1]
    'the simulation is 0.43 % below, the formula is 12 % below, the guess is 35 % below.'
    """
    values = dict(zip(STAGES, (guess, formula, simulation, measurement), strict=True))
    figure = go.Figure(
        [
            go.Bar(
                orientation="h", y=[stage], x=[value], name=stage, marker=marker(STAGES[stage]),
                hovertemplate=f"{stage}: %{{x:.4g}} {unit}<extra></extra>",
            )
            for stage, value in values.items()
        ]
    )  # fmt: skip
    reach = max((value for value in values.values() if value is not None), default=1.0) or 1.0
    figure.update_layout(template=template(), height=250, showlegend=False, margin={"t": 16, "b": 50, "l": 10, "r": 12})
    figure.update_xaxes(title_text=f"{quantity} ({unit})", range=[0, 1.3 * reach])
    figure.update_yaxes(categoryorder="array", categoryarray=list(STAGES), range=[3.5, -0.5], showgrid=False)
    if measurement is not None:
        figure.add_vline(x=measurement, line={"color": INK, "width": 1.5, "dash": "dot"})
    errors = {stage: "–" if stage == "measurement" else _error(value, measurement) for stage, value in values.items()}
    for stage, value in values.items():
        # On paper of its own, so that the measurement's line does not strike the number through.
        label = "not yet" if value is None else f"{shown(float(value))} {unit}"
        error = f" ({errors[stage]})" if errors[stage] != "–" else ""
        figure.add_annotation(
            x=value or 0.0,
            y=stage,
            text=label + error,
            xanchor="left",
            xshift=5,
            showarrow=False,
            bgcolor=PAPER,
            borderpad=1,
        )
    table: list[Row] = [
        {"stage": stage, f"{quantity} ({unit})": value, "error": errors[stage]} for stage, value in values.items()
    ]
    return Captioned(figure, _sentence(values, unit, quantity), table)


def _error(value: float | None, measurement: float | None) -> str:
    if value is None or not measurement:
        return "–"
    return signed(100.0 * (value - measurement) / measurement, "%")


def _sentence(values: dict[str, float | None], unit: str, quantity: str) -> str:
    measurement = values["measurement"]
    if not measurement:
        known = [f"{stage} {shown(float(value))} {unit}" for stage, value in values.items() if value is not None]
        return f"Not measured yet; {quantity}: {', '.join(known) or 'no guess yet'}."
    parts = []
    for stage in ("simulation", "formula", "guess"):
        value = values[stage]
        if value is not None:
            error = 100.0 * (value - measurement) / measurement
            parts.append(f"the {stage} is {abs(error):.2g} % {'above' if error > 0 else 'below'}")
    sentence = f"Measured: a {quantity} of {shown(float(measurement))} {unit}"
    return f"{sentence}; {', '.join(parts)}." if parts else f"{sentence}."
