"""How commands talk: tables with colour on a terminal, plain text in a pipe, JSON on request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distsim.comparison import Comparison
from distsim.metrics import Summary
from distsim.trace import PAUSE_KINDS
from distsim.trace.files import check_name
from distsim.units import show

PIPE_WIDTH = 110
NOT_APPLICABLE = "–"
PAUSES = {kind.text: kind.words for kind in PAUSE_KINDS}
GOOD_PERCENT, FAIR_PERCENT = 5.0, 10.0


def _trace_file(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_name(path)
    return path


trace_option = click.option(
    "--trace",
    type=click.Path(path_type=Path),
    callback=_trace_file,
    help="Save the trace: .npz, .json or .json.gz (the latter two open in Perfetto).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for our tables in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPE_WIDTH, no_color=True)


def print_json(value: Any) -> None:
    """One JSON document; a number that JSON cannot hold is null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def warn(lines: Iterable[str]) -> None:
    """A line each on standard error."""
    for line in lines:
        click.echo(f"distsim: warning: {line}", err=True)


def figures_of(summary: Summary) -> list[tuple[str, str]]:
    """(name, value as text) of each figure of a run."""
    steps = summary.step_seconds
    figures = [
        ("step time, median", _seconds(steps.median if steps else None)),
        ("step time, mean", _seconds(steps.mean if steps else None)),
        ("step time, 90th percentile", _seconds(steps.p90 if steps else None)),
        ("total", _seconds(summary.total_seconds)),
        ("updates", str(summary.updates)),
        ("dropped gradients", str(summary.dropped_gradients)),
        ("mean staleness", NOT_APPLICABLE if summary.mean_staleness is None else f"{summary.mean_staleness:.2f}"),
        ("idle share", _share(summary.idle_share)),
        *[(f"of it {PAUSES[kind]}", _share(share)) for kind, share in (summary.paused_shares or {}).items()],
        ("exposed communication", _share(summary.exposed_communication_share)),
        (
            "busiest link",
            NOT_APPLICABLE if summary.bytes_per_link_max is None else show(summary.bytes_per_link_max, "byte"),
        ),
    ]
    if summary.failures is not None:
        figures += [("failures", str(summary.failures)), ("goodput", _share(summary.goodput))]
    return figures


def print_notes(lines: Iterable[str]) -> None:
    """Sentences under a table, as long as they are."""
    for line in lines:
        console().print(Text(f"  {line}"), soft_wrap=True)


def summary_table(name: str, producer: str, summary: Summary) -> Table:
    """One run."""
    table = _table(name, ("", producer))
    for figure, value in figures_of(summary):
        table.add_row(figure, value)
    return table


def comparison_table(comparison: Comparison) -> Table:
    """Predicted, measured, and the error of what is judged."""
    table = _table(comparison.name, ("", "predicted", "measured", "error"))
    predicted, measured = figures_of(comparison.predicted), figures_of(comparison.measured)
    errors = _errors(comparison)
    for (figure, ours), (_, theirs) in zip(predicted, measured, strict=True):
        table.add_row(figure, ours, theirs, errors.get(figure, Text("")))
    table.add_row("step by step, median |error|", "", "", _percent(comparison.error_pct.step_median))
    return table


def causes_line(comparison: Comparison) -> str:
    """Where the error of the total comes from, in mean worker-seconds."""
    causes = comparison.error_pct.causes
    parts = ", ".join(f"{comparison.cause_words(part)} {_signed(seconds)}" for part, seconds in causes.items())
    return f"predicted - measured total {_signed(sum(causes.values()))}, of which {parts} (mean over workers)"


def _errors(comparison: Comparison) -> dict[str, Text]:
    error = comparison.error_pct
    ours, theirs = comparison.predicted, comparison.measured
    found = {
        "total": _percent(error.total),
        "mean staleness": _percent(error.staleness),
        "dropped gradients": Text(f"{ours.dropped_gradients - theirs.dropped_gradients:+d}"),
    }
    if ours.failures is not None and theirs.failures is not None:
        found["failures"] = Text(f"{ours.failures - theirs.failures:+d}")
    if ours.step_seconds and theirs.step_seconds:
        for name, predicted, measured in (
            ("step time, median", ours.step_seconds.median, theirs.step_seconds.median),
            ("step time, mean", ours.step_seconds.mean, theirs.step_seconds.mean),
            ("step time, 90th percentile", ours.step_seconds.p90, theirs.step_seconds.p90),
        ):
            found[name] = _percent(100.0 * abs(predicted - measured) / measured if measured else None)
    shares = [
        ("idle share", ours.idle_share, theirs.idle_share),
        ("exposed communication", ours.exposed_communication_share, theirs.exposed_communication_share),
        ("goodput", ours.goodput, theirs.goodput),
    ]
    for kind, words in PAUSES.items():
        one, other = ((run.paused_shares or {}).get(kind) for run in (ours, theirs))
        shares.append((f"of it {words}", one, other))
    for name, one, other in shares:
        if one is not None and other is not None:
            found[name] = Text(f"{100 * (one - other):+z.1f} points")
    return found


def _percent(value: float | None) -> Text:
    if value is None:
        return Text("")
    style = "green" if value <= GOOD_PERCENT else "yellow" if value <= FAIR_PERCENT else "red"
    return Text(f"{value:.1f} %", style=style)


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _seconds(value: float | None) -> str:
    return NOT_APPLICABLE if value is None else show(value, "second")


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{show(abs(seconds), 'second')}"


def _share(value: float | None) -> str:
    return NOT_APPLICABLE if value is None else f"{100 * value:z.1f} %"
