"""Goodput against the interval between checkpoints: the curve of the formula, its best interval, and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.failures import Failures
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import FORMULA, HINT, INK, LABEL_PAPER, PREDICTED, SMALL, template
from distsim.statistics import Interval, interval
from distsim.theory.checkpointing import (
    best_interval_seconds,
    daly_interval_seconds,
    goodput,
    system_mean_time_between_seconds,
    young_interval_seconds,
)
from distsim.units import duration, show

POINTS = 160
BEYOND = 12.0  # the curve reaches from the best interval / 12 to the best interval x 12
NAME, MINUTES, BY_FORMULA = "interval", "length (min)", "goodput, formula (%)"
OF_RUNS, LOW, HIGH = "mean of the runs (%)", "from (%)", "to (%)"
Goodputs = Mapping[float, Sequence[float]]


def checkpoints(failures: Failures, workers: int, goodputs: Goodputs | None = None) -> Captioned:
    """Draws the share of useful time against the interval, and marks the interval in `failures` as chosen.

    goodputs: by interval in seconds, the goodputs of runs with different seeds. Two runs or more also get
    Student's 95 % interval of their mean, cut at 0 and 100 %. Source of the curve: Daly 2006, see
    `distsim.theory.checkpointing`.

    >>> every_hour = Failures(mean_time_between="10 d", checkpoint_every="1 h", checkpoint_cost="1 min")
    >>> checkpoints(every_hour, workers=64).summary
    'A checkpoint every 60 min costs 60 s, and one of 64 workers fails every 225 min: 85.6 % of the time is useful \
work. The best interval is 20.6 min, with 90.9 %.'
    """
    runs = {seconds: list(found) for seconds, found in sorted((goodputs or {}).items()) if len(found)}
    mean_time = system_mean_time_between_seconds(failures.mean_time_between_seconds, workers)
    chosen, cost = failures.checkpoint_every_seconds, failures.checkpoint_cost_seconds
    best = best_interval_seconds(cost, mean_time)
    rules = {
        "chosen": chosen,
        "best": best,
        "Young 1974": young_interval_seconds(cost, mean_time),
        "Daly 2006": daly_interval_seconds(cost, mean_time),
    }
    if not cost:
        rules = {"chosen": chosen}  # without a cost, the shortest interval is best

    def curve(seconds: float) -> float:
        return goodput(seconds, cost, failures.restart_cost_seconds, mean_time)

    table = [_row(name, seconds, curve(seconds), runs) for name, seconds in rules.items()]
    figure = go.Figure()
    reach = _reach([chosen, *runs], best)
    _add_curve(figure, reach, np.array([curve(seconds) for seconds in reach]))
    _add_rules(figure, table)
    _add_runs(figure, runs)
    _add_chosen(figure, table[0])
    figure.update_layout(template=template(), height=420, hovermode="closest")
    figure.update_layout(margin={"t": 70, "b": 52, "l": 10, "r": 14})
    figure.update_xaxes(
        type="log", title_text="useful work between checkpoints (min)", range=np.log10(reach[[0, -1]] / 60.0).tolist(),
        dtick="D2", tickformat=",~g",
    )  # fmt: skip
    figure.update_yaxes(title_text="goodput (% of the time)", rangemode="tozero")
    return Captioned(figure, _sentence(table, failures, mean_time, workers, runs), table)


def _row(name: str, seconds: float, by_formula: float, runs: Goodputs) -> Row:
    found = runs.get(seconds, ())
    mean, low, high = interval(found).within(0.0, 1.0) if len(found) > 1 else (found[0] if found else None, None, None)
    in_percent = {OF_RUNS: mean, LOW: low, HIGH: high}
    return {
        NAME: name,
        MINUTES: seconds / 60.0,
        BY_FORMULA: 100.0 * by_formula,
        **{column: None if share is None else 100.0 * share for column, share in in_percent.items()},
    }


def _reach(intervals: Sequence[float], best: float) -> Floats:
    """The intervals of the curve, in seconds."""
    around = [best / BEYOND, best * BEYOND] if best else []
    low, high = min([*intervals, *around]), max([*intervals, *around])
    return np.geomspace(0.8 * low, 1.25 * high, POINTS)


def _add_curve(figure: go.Figure, seconds: Floats, shares: Floats) -> None:
    figure.add_scatter(
        x=seconds / 60.0, y=100.0 * shares, mode="lines", name="formula",
        line={"color": FORMULA.colour, "width": 2.5},
        hovertemplate="every %{x:,.4~r} min: %{y:.1f} %<extra>formula</extra>",
    )  # fmt: skip


def _add_rules(figure: go.Figure, table: Sequence[Row]) -> None:
    """A line at the best interval with its name; a mark on the curve for each rule of thumb."""
    for row, symbol in zip(table[2:], ("triangle-up", "triangle-down"), strict=False):
        figure.add_scatter(
            x=[row[MINUTES]], y=[row[BY_FORMULA]], mode="markers", name=str(row[NAME]),
            marker={"symbol": symbol, "size": 12, "color": HINT, "line": {"color": INK, "width": 1}},
            hovertemplate=f"{row[NAME]}: %{{x:.3g}} min, %{{y:.1f}} %<extra></extra>",
        )  # fmt: skip
    for row in table[1:2]:
        minutes = float(row[MINUTES] or 0.0)
        figure.add_vline(x=minutes, line={"color": INK, "width": 1.5, "dash": "dash"}, name="best")
        figure.add_annotation(
            x=np.log10(minutes), y=0.04, yref="y domain", xanchor="left", xshift=4, showarrow=False, font_size=SMALL,
            text=f"best: every {duration(60.0 * minutes)}", bgcolor=LABEL_PAPER,
        )  # fmt: skip


def _add_runs(figure: go.Figure, runs: Goodputs) -> None:
    if not runs:
        return
    found = [interval(of).within(0.0, 1.0) if len(of) > 1 else Interval(*[of[0]] * 3) for of in runs.values()]
    means, lows, highs = 100.0 * np.array(found).T
    figure.add_scatter(
        x=[seconds / 60.0 for seconds in runs], y=means, mode="markers", name="runs, mean and 95 % interval",
        error_y={
            "type": "data", "symmetric": False, "array": highs - means, "arrayminus": means - lows, "color": INK,
            "thickness": 1.2, "width": 5,
        },
        marker={"size": 9, "color": PREDICTED.colour, "line": {"color": INK, "width": 1}},
        customdata=np.column_stack([lows, highs]),
        hovertemplate="every %{x:,.4~r} min: %{y:.1f} %, "
        "from %{customdata[0]:.1f} to %{customdata[1]:.1f} %<extra>runs</extra>",
    )  # fmt: skip


def _add_chosen(figure: go.Figure, row: Row) -> None:
    figure.add_scatter(
        x=[row[MINUTES]], y=[row[BY_FORMULA]], mode="markers", name="chosen",
        marker={
            "symbol": "square-open", "size": 17, "color": INK,
            "line": {"color": INK, "width": 3},
        },
        hovertemplate="chosen: %{x:,.4~r} min, %{y:.1f} %<extra></extra>",
    )  # fmt: skip


def _sentence(table: Sequence[Row], failures: Failures, mean_time: float, workers: int, runs: Goodputs) -> str:
    chosen = table[0]
    of = f"one of {workers} workers" if workers > 1 else "the one worker"
    text = (
        f"A checkpoint every {_length(chosen)} costs {show(failures.checkpoint_cost_seconds, 'second')}, "
        f"and {of} fails every {duration(mean_time)}: {_percent(chosen[BY_FORMULA])} of the time is useful work"
    )
    if chosen[LOW] is not None:
        count = len(runs[failures.checkpoint_every_seconds])
        text += f" ({_percent(chosen[OF_RUNS])} in {count} runs, {_percent(chosen[LOW])} to {_percent(chosen[HIGH])})"
    elif chosen[OF_RUNS] is not None:
        text += f" ({_percent(chosen[OF_RUNS])} in one run)"
    if len(table) == 1:
        return f"{text}. More frequent checkpoints are better."
    return f"{text}. The best interval is {_length(table[1])}, with {_percent(table[1][BY_FORMULA])}."


def _length(row: Row) -> str:
    return duration(60.0 * float(row[MINUTES] or 0.0))


def _percent(share: object) -> str:
    """A share in percent, with two decimals from 99 % on."""
    assert isinstance(share, float), "the caller passes shares that are there"
    return f"{share:.1f} %" if share < 99.0 else f"{share:.2f} %"
