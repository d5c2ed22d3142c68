"""The printed tables of one run, and of a run beside its prediction."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from distsim.cli.output import NOT_APPLICABLE, table
from distsim.comparison import Comparison
from distsim.metrics import Metric, Summary, percent_error
from distsim.metrics.table import Value, in_tables
from distsim.units import show

GOOD_PERCENT, FAIR_PERCENT = 5.0, 10.0


def summary_table(name: str, producer: str, summary: Summary) -> Table:
    """The metrics of one run."""
    rows = table(name, "", producer)
    for metric in in_tables():
        if metric.name in summary.values:
            rows.add_row(metric.label, *_texts(metric, summary.values[metric.name]))
    return rows


def comparison_table(comparison: Comparison) -> Table:
    """Each metric predicted and measured, with the error of the prediction where the metric has one."""
    rows = table(comparison.name, "", "predicted", "measured", "error")
    for metric in in_tables():
        if metric.name in comparison.predicted.values | comparison.measured.values:
            pair = [run.values.get(metric.name) for run in (comparison.predicted, comparison.measured)]
            rows.add_row(metric.label, *_texts(metric, *pair), _error(metric, *pair))
    rows.add_row("step by step, median |error|", "", "", _percent(comparison.error_pct.step_median, "{:.1f} %"))
    return rows


def causes_line(comparison: Comparison) -> str:
    """The causes of the total's error, in mean worker-seconds."""
    causes = comparison.error_pct.causes
    parts = ", ".join(f"{comparison.cause_words(part)} {_signed(seconds)}" for part, seconds in causes.items())
    return f"predicted - measured total {_signed(sum(causes.values()))}, of which {parts} (mean over workers)"


def _texts(metric: Metric, *values: Value) -> list[str]:
    texts = iter(metric.unit.texts([value for value in values if value is not None]))
    return [NOT_APPLICABLE if value is None else next(texts) for value in values]


def _error(metric: Metric, predicted: Value, measured: Value) -> Text:
    if predicted is None or measured is None:
        return Text("")
    match metric.error:
        case "percent":
            return _percent(percent_error(predicted, measured))
        case "points":
            return Text(f"{100 * (predicted - measured):+z.1f} points")
        case "count":
            return Text(f"{predicted - measured:+d}")
        case None:
            return Text("")


def _percent(error: float | None, form: str = "{:+z.1f} %") -> Text:
    if error is None:
        return Text("")
    style = "green" if abs(error) <= GOOD_PERCENT else "yellow" if abs(error) <= FAIR_PERCENT else "red"
    return Text(form.format(error), style=style)


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{show(abs(seconds), 'second')}"
