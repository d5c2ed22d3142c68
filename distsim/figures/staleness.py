"""The staleness of the applied gradients of one or more runs: the share of each staleness, and the means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Floats
from distsim.comparison import staleness_distance
from distsim.errors import InputError
from distsim.figures.arguments import run_names
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import (
    DASHES,
    FORMULA,
    INK,
    LABEL_PAPER,
    MARKS,
    MEASURED,
    PREDICTED,
    RUNS,
    SMALL,
    Look,
    marker,
    template,
)
from distsim.figures.wording import above_or_below, counted
from distsim.metrics import mean_staleness, staleness_histogram
from distsim.theory.staleness import mean_staleness as mean_of_a_long_run
from distsim.theory.staleness import staleness_probability
from distsim.trace import Trace

MOST_BARS = 60  # of one run; if there are more values, neighbours share a bar
MOST_TICKS = 20
MOST_WIDE_TICKS = 8  # of bars that share several values, whose labels are longer
TAIL = 0.01  # of each run's gradients; a tail of no more, and as long as all the rest, shares the last bar
HEADROOM = 0.09  # space above the bars for the label of each mean, as a share of the highest bar


@dataclass(frozen=True)
class Bars:
    """The bars of histograms, from staleness 0 on.

    width: how many values share a bar. names: by bar, its values. tail: whether the last bar has all that is staler.

    >>> Bars.of([{0: 60, 1: 39, 9: 1}])
    Bars(width=1, names=['0', '1', '2 or more'], tail=True)
    """

    width: int
    names: list[str]
    tail: bool

    @classmethod
    def of(cls, histograms: Sequence[dict[int, float]]) -> Bars:
        """The bars of all runs together."""
        largest, last = 0, 0
        for histogram in filter(None, histograms):
            values, count = sorted(histogram), sum(histogram.values())
            staler = count - np.cumsum([histogram[value] for value in values])
            last = max(last, values[int(np.argmax(staler <= TAIL * count))])
            largest = max(largest, values[-1])
        tail = largest > 2 * max(last, 1)
        last = last if tail else largest
        width = last // MOST_BARS + 1
        names = [str(low) if width == 1 else f"{low} to {low + width - 1}" for low in range(0, last + 1, width)]
        return cls(width, [*names, *[f"{width * len(names)} or more"] * tail], tail)

    @property
    def middles(self) -> Floats:
        """Where each bar stands."""
        return np.asarray(self.width * np.arange(len(self.names)) + (self.width - 1) / 2)

    def shares(self, histogram: dict[int, float]) -> Floats:
        """Percent of the gradients in each bar."""
        found = np.zeros(len(self.names))
        for value, count in histogram.items():
            found[min(value // self.width, len(found) - 1)] += count
        return np.asarray(100.0 * found / max(found.sum(), 1.0))

    def axis(self) -> dict[str, Any]:
        """The axis below the bars, with the values of some of them."""
        most = MOST_TICKS if self.width == 1 else MOST_WIDE_TICKS
        step = -(-len(self.names) // most)
        last = len(self.names) - 1
        places = [*range(0, last - step // 2, step), last]
        return {
            "title": {"text": "staleness (updates)"},
            "range": [-0.5 - 0.2 * self.width, self.width * len(self.names) - 0.5 + 0.2 * self.width],
            "tickvals": self.middles[places], "ticktext": [self.names[at].replace(" or more", "+") for at in places],
        }  # fmt: skip


def staleness(*traces: Trace, names: Sequence[str] | None = None) -> Captioned:
    """Draws the share of each staleness among a run's applied gradients as bars, and a line at each mean.

    A long and thin tail shares the last bar. Beside asynchronous runs, a curve shows the shares if every worker is
    equally likely to finish next, as with exponential times. For a simulated run and a measured run, the sentence also
    tells the error of the prediction.

    names: of the runs; None takes the names of their policies.

    Raises InputError where there is no trace.

    >>> import distsim
    >>> run = distsim.example("backup_server").replacing({"policy": {"kind": "asynchronous"}})
    >>> staleness(distsim.simulate(run)).summary
    'Asynchronous: the mean staleness of 250 gradients is 3.96 updates, the largest 9 (the long run has 4).'
    """
    if not traces:
        raise InputError.of("staleness(traces)", traces, "there is nothing to draw", "pass at least one trace")
    shown_names = run_names("staleness", [_called(trace) for trace in traces], names)
    histograms = [staleness_histogram(trace) for trace in traces]
    bars = Bars.of(histograms)
    figure = go.Figure()
    table: list[Row] = []
    sentences = []
    shares = [bars.shares(histogram) for histogram in histograms]
    highest = max(float(share.max()) for share in shares) or 1.0
    looks = _looks(traces)
    middle = float(bars.middles[-1]) / 2
    for number, (trace, name, histogram, share) in enumerate(zip(traces, shown_names, histograms, shares, strict=True)):
        look = looks[number]
        mean = mean_staleness(trace)
        figure.add_bar(
            x=bars.middles, y=share, name=name, marker=marker(look), hovertext=bars.names,
            hovertemplate=f"{name}<br>staleness %{{hovertext}}: %{{y:.3g}} % of the gradients<extra></extra>",
        )  # fmt: skip
        if mean is not None:
            line = {"color": look.colour, "width": 2.5, "dash": DASHES[number % len(DASHES)]}
            height = (1.0 + HEADROOM * (number + 1)) * highest
            _add_mean(figure, name, mean, height, line, "left" if mean <= middle else "right")
        count = round(sum(histogram.values()))
        table.append(
            {
                "run": name,
                "applied gradients": count,
                "mean staleness (updates)": mean,
                "largest": max(histogram, default=None),
                "fresh (%)": 100.0 * histogram.get(0, 0) / count if count else None,
            }
        )
        sentences.append(_sentence(trace, table[-1]))
    sentences += _error(traces)
    numbers = sorted({trace.workers for trace in traces if _is_asynchronous(trace) and trace.workers > 1})
    for number, workers in enumerate(numbers):
        _add_geometric(figure, workers, bars, number)
    figure.update_layout(template=template(), height=360, barmode="group", bargap=0.15)
    figure.update_layout(margin={"t": 44, "b": 50, "l": 10, "r": 30})
    figure.update_xaxes(bars.axis())
    figure.update_yaxes(
        title_text="share of the gradients (%)", range=[0.0, (1.0 + HEADROOM * (len(traces) + 1)) * highest]
    )
    if highest > 60.0:
        figure.update_yaxes(tickvals=list(range(0, 101, 20)))
    return Captioned(figure, " ".join(sentences), table)


def _called(trace: Trace) -> str:
    """The name of a run: the name of its policy, or the producer if the trace has no scenario."""
    if "scenario" not in trace.metadata:
        return str(trace.producer)
    return str(trace.scenario.policy.kind).replace("_", " ")


def _is_asynchronous(trace: Trace) -> bool:
    return "scenario" in trace.metadata and trace.scenario.policy.kind == "asynchronous"


def _add_geometric(figure: go.Figure, workers: int, bars: Bars, number: int) -> None:
    """Draws the theory's share of each bar, but for one of a tail."""
    alone = [bar * bars.width for bar in range(len(bars.names) - bars.tail)]
    shares = [100.0 * sum(staleness_probability(low + more, workers) for more in range(bars.width)) for low in alone]
    figure.add_scatter(
        x=bars.middles[: len(alone)], y=shares, mode="lines+markers", name=f"formula: geometric, {workers} workers",
        line={"color": FORMULA.colour, "width": 1.5, "dash": "dot"},
        marker={
            "color": FORMULA.colour, "symbol": MARKS[number % len(MARKS)], "size": 6,
            "line": {"color": INK, "width": 0.6},
        },
        hovertemplate="formula: %{y:.3g} % of the gradients<extra></extra>",
    )  # fmt: skip


def _looks(traces: Sequence[Trace]) -> list[Look]:
    """The looks of runs; of one prediction and its measurement those that these two have everywhere."""
    if sorted(str(trace.producer) for trace in traces) == ["measured", "simulated"]:
        return [PREDICTED if trace.producer == "simulated" else MEASURED for trace in traces]
    return [RUNS[number % len(RUNS)] for number in range(len(traces))]


def _add_mean(figure: go.Figure, name: str, mean: float, height: float, line: dict[str, Any], anchor: str) -> None:
    """Draws the line of a mean up to its label, which begins or ends there: "left" or "right"."""
    figure.add_scatter(
        x=[mean, mean], y=[0.0, height], mode="lines", line=line, showlegend=False, name=f"mean of {name}",
        hovertemplate=f"mean of {name}: %{{x:.3g}} updates<extra></extra>",
    )  # fmt: skip
    figure.add_annotation(
        x=mean, y=height, text=f"{name}: mean {mean:.3g}", showarrow=False, xanchor=anchor, yanchor="middle",
        xshift=4 if anchor == "left" else -4,
        font={"size": SMALL, "color": INK}, bgcolor=LABEL_PAPER,
    )  # fmt: skip


def _sentence(trace: Trace, row: Row) -> str:
    run = str(row["run"])
    name = run[:1].upper() + run[1:]
    if not row["applied gradients"]:
        return f"{name}: no gradient was applied."
    count, mean = int(row["applied gradients"]), row["mean staleness (updates)"]
    expected = ""
    if _is_asynchronous(trace):
        expected = f" (the long run has {mean_of_a_long_run(trace.workers):.0f})"
    return (
        f"{name}: the mean staleness of {counted(count, 'gradient')} is {mean:.3g} updates, "
        f"the largest {row['largest']}{expected}."
    )


def _error(traces: Sequence[Trace]) -> list[str]:
    """A sentence that compares the first simulated run with the first measured run; empty unless both exist."""
    found = {trace.producer: trace for trace in reversed(traces) if trace.contributions.applied.any()}
    if set(found) != {"simulated", "measured"}:
        return []
    predicted, measured = found["simulated"], found["measured"]
    ours, theirs = mean_staleness(predicted) or 0.0, mean_staleness(measured) or 0.0
    off = above_or_below(ours, theirs) if theirs else f"{ours:.3g} updates above"
    apart = 100.0 * staleness_distance(predicted, measured)
    return [
        f"The predicted mean is {off} the measured one; {apart:.2g} % of the gradients would have to change their "
        "staleness for the two to be equal."
    ]
