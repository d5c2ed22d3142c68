"""A prediction beside its measurement: the error of each quantity, and the error of the total by cause."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.comparison import Comparison, compare
from distsim.figures.captioned import Captioned, column_texts, shown
from distsim.figures.theme import COMMUNICATION, COMPUTE, INK, MEASURED, PREDICTED, SMALL, TOTAL, WAIT, marker, template
from distsim.figures.wording import signed, time_unit
from distsim.metrics import Summary
from distsim.trace import Trace

ROW_PIXELS, CAUSES_PIXELS, GAP_PIXELS, TOP_PIXELS, BOTTOM_PIXELS = 34, 150, 34, 78, 50
ROOM = 1.1  # for a label beside a bar, as a share of the longest bar
CAUSES = {"compute": COMPUTE, "communication": COMMUNICATION, "waiting": WAIT}


@dataclass(frozen=True)
class Quantity:
    """One quantity of both runs. relative: whether the error is a percentage of the measurement or a difference."""

    name: str
    unit: str
    predicted: float | None
    measured: float | None
    relative: bool = True

    @property
    def error(self) -> str:
        """The signed error in words; positive where the prediction is too high.

        >>> Quantity("total", "s", 2.05, 2.0).error, Quantity("idle share", "%", 20.5, 21.0, relative=False).error
        ('+2.5 %', '-0.5 points')
        """
        if self.predicted is None or self.measured is None:
            return "–"
        difference = self.predicted - self.measured
        if not self.relative:
            return signed(difference, "points" if self.unit == "%" else self.unit)
        if self.measured == 0.0:
            return "0 %" if difference == 0.0 else "–"
        return signed(100.0 * difference / self.measured, "%")


def comparison(comparison: Comparison) -> Captioned:
    """Draws bars of both runs in a row for each quantity, and below the rows the error of the total by cause.

    Each cause is predicted - measured, in seconds of an average worker. The causes add up to the error of the total.

    >>> import distsim
    >>> trace = distsim.simulate(distsim.example("backup_server"))
    >>> comparison(distsim.compare(trace, trace)).table[1]["error"]
    '0 %'
    """
    quantities = _quantities(comparison.predicted, comparison.measured)
    heights = [*[ROW_PIXELS] * len(quantities), CAUSES_PIXELS]
    inner = sum(heights) + GAP_PIXELS * len(quantities)
    figure = make_subplots(rows=len(heights), row_heights=heights, vertical_spacing=GAP_PIXELS / inner)
    figure.update_layout(
        template=template(), height=inner + TOP_PIXELS + BOTTOM_PIXELS, bargap=0.1,
        margin={"t": TOP_PIXELS, "b": BOTTOM_PIXELS}, legend={"y": 1.0 + 32 / inner},
    )  # fmt: skip
    for row, quantity in enumerate(quantities, start=1):
        _add_pair(figure, row, quantity)
    _add_causes(figure, len(heights), comparison)
    return Captioned(figure, _sentence(comparison), _table(quantities, comparison))


def of_files(predicted: Trace, measured: Trace) -> Captioned:
    """Compares both runs, for `distsim figure`. Raises InputError where their scenarios differ."""
    return comparison(compare(predicted, measured))


def _quantities(predicted: Summary, measured: Summary) -> list[Quantity]:
    steps = tuple(None if run.step_seconds is None else run.step_seconds.median for run in (predicted, measured))
    scale, unit = time_unit(max(step or 0.0 for step in steps), 1.0)
    ours, theirs = (None if step is None else step * scale for step in steps)
    total_scale, total_unit = time_unit(max(predicted.total_seconds, measured.total_seconds), 1.0)
    found = [
        Quantity("step time, median", unit, ours, theirs),
        Quantity("total", total_unit, predicted.total_seconds * total_scale, measured.total_seconds * total_scale),
        Quantity("idle share", "%", _percent(predicted.idle_share), _percent(measured.idle_share), relative=False),
        Quantity(
            "exposed communication", "%", _percent(predicted.exposed_communication_share),
            _percent(measured.exposed_communication_share), relative=False,
        ),
    ]  # fmt: skip
    if predicted.mean_staleness or measured.mean_staleness:
        found.append(Quantity("mean staleness", "updates", predicted.mean_staleness, measured.mean_staleness))
    if predicted.dropped_gradients or measured.dropped_gradients:
        dropped = float(predicted.dropped_gradients), float(measured.dropped_gradients)
        found.append(Quantity("dropped gradients", "", *dropped, relative=False))
    return found


def _percent(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def _add_pair(figure: go.Figure, row: int, quantity: Quantity) -> None:
    values = [quantity.predicted, quantity.measured]
    for look, value, text in zip((PREDICTED, MEASURED), values, column_texts(values), strict=True):
        figure.add_bar(
            orientation="h", y=[look.name], x=[value], marker=marker(look), text=[text],
            textposition="outside", cliponaxis=False, name=look.name, legendgroup=look.name, showlegend=row == 1,
            hovertemplate=f"{quantity.name}, {look.name}<br>%{{x:.4g}} {quantity.unit}<extra></extra>",
            row=row, col=1,
        )  # fmt: skip
    highest = max((value for value in values if value is not None), default=1.0) or 1.0
    figure.update_xaxes(range=[0, 1.18 * highest], showticklabels=False, ticks="", showgrid=False, row=row, col=1)
    figure.update_yaxes(autorange="reversed", showticklabels=False, ticks="", showgrid=False, row=row, col=1)
    unit = f" ({quantity.unit})" if quantity.unit else ""
    _add_title(figure, row, f"{quantity.name}{unit}: <b>error {quantity.error}</b>")


def _add_title(figure: go.Figure, row: int, text: str) -> None:
    """A line over a row, from the row's left end: lines of different rows never meet, however narrow the figure."""
    figure.add_annotation(
        text=text, x=0.0, xref="paper", xanchor="left", y=1.0, yref=f"y{row if row > 1 else ''} domain",
        yanchor="bottom", yshift=3, showarrow=False, font_size=SMALL + 1,
    )  # fmt: skip


def _add_causes(figure: go.Figure, row: int, comparison: Comparison) -> None:
    causes = comparison.error_pct.causes
    total = sum(causes.values())
    scale, unit = time_unit(max(map(abs, [*causes.values(), total])), 1.0)
    names = [*CAUSES, "total"]
    values = [scale * seconds for seconds in (*(causes[cause] for cause in CAUSES), total)]
    share = 100.0 / (scale * comparison.measured.total_seconds) if comparison.measured.total_seconds else 0.0
    for cause, value in zip(names, values, strict=True):
        name = comparison.cause_words(cause)
        figure.add_bar(
            orientation="h", y=[name], x=[value], marker=marker(CAUSES.get(cause, TOTAL)), name=name,
            text=[f"{signed(value, unit)} ({signed(share * value, '%')})"], textposition="outside",
            cliponaxis=False, showlegend=False,
            hovertemplate=f"{name}: %{{x:+.4g}} {unit}<extra></extra>",
            row=row, col=1,
        )  # fmt: skip
    reach = max(map(abs, values)) or 1.0
    low, high = min(values), max(values)
    figure.update_xaxes(
        range=[low - ROOM * reach if low < 0 else -0.05 * reach, high + ROOM * reach], zeroline=True, zerolinecolor=INK,
        title_text=f"predicted - measured, of an average worker ({unit})",
        row=row, col=1,
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False, row=row, col=1)
    _add_title(figure, row, "<b>error of the total by cause</b> (% of the measured total)")


def _table(quantities: list[Quantity], comparison: Comparison) -> list[dict[str, str | float | int | None]]:
    rows: list[dict[str, str | float | int | None]] = [
        {
            "figure": f"{quantity.name} ({quantity.unit})" if quantity.unit else quantity.name,
            "predicted": quantity.predicted,
            "measured": quantity.measured,
            "error": quantity.error,
        }
        for quantity in quantities
    ]
    step_error = comparison.error_pct.step_median
    within = "–" if step_error is None else f"{shown(step_error)} %"
    rows.append({"figure": "step by step, median |error|", "predicted": None, "measured": None, "error": within})
    for cause, seconds in comparison.error_pct.causes.items():
        rows.append(
            {
                "figure": f"of the total's error: {comparison.cause_words(cause)}",
                "predicted": None,
                "measured": None,
                "error": signed(1e3 * seconds, "ms"),
            }
        )
    return rows


def _sentence(comparison: Comparison) -> str:
    predicted, measured = comparison.predicted.total_seconds, comparison.measured.total_seconds
    difference = predicted - measured
    if not comparison.predicted.updates and not comparison.measured.updates:
        return "No update was recorded in either run."
    if difference == 0.0:
        return f"Both runs take {measured:.3g} s."
    cause, seconds = max(comparison.error_pct.causes.items(), key=lambda item: abs(item[1]))
    side = "above" if difference > 0 else "below"
    relative = f", {abs(100.0 * difference / measured):.2g} % {side} the measured {measured:.3g} s" if measured else ""
    return (
        f"The predicted total is {predicted:.3g} s{relative}; "
        f"the largest part of the error is {comparison.cause_words(cause)}, {signed(1e3 * seconds, 'ms')} of an "
        "average worker's time."
    )
