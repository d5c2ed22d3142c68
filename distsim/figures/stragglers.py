"""The time of a step on one worker, and the cost of waiting for many workers: the order statistics.

The left panel shows the distribution of one worker's time, and the expected k-th smallest time of all workers. The
right panel shows the expected slowest and slowest but one against the number of workers. Of a run of many workers, two
more panels show the times by step, and a map of workers and steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.figures import stragglers_by_step
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import (
    COMPUTE,
    FORMULA,
    INK,
    LABEL_PAPER,
    LETTER_WIDTH,
    MEASURED,
    PREDICTED,
    SMALL,
    Look,
    marker,
    template,
)
from distsim.figures.wording import above_or_below, time_unit
from distsim.policies import FlexRR
from distsim.theory.order_statistics import WorkerTime, expected_order_statistic_seconds
from distsim.theory.stragglers import worker_times
from distsim.trace import COMPUTE_KINDS, Trace
from distsim.units import show

BINS = 50
TAIL = 0.005  # at most this share of the times lies to the right of the drawing
LEFT_PIXELS = 300  # the width of the left panel in a narrow figure
MOST_MARKS = 32  # for k-th smallest times
LARGEST = 256  # the curve reaches this number of workers, if all workers are alike


def stragglers(times: Sequence[WorkerTime], trace: Trace | None = None) -> Captioned:
    """Draws the distribution and the order statistics of workers' step times, and how the slowest time grows.

    times: one per worker, from `distsim.theory.stragglers.worker_times`. trace: a run of as many workers. Its compute
    times are drawn beside the distribution, and the mean over steps of the slowest time beside the formula. A run of
    more than 32 workers also shows how its compute times vary from step to step and from worker to worker.

    Raises InputError where there is no worker, or the trace has another number of workers or the policy FlexRR.

    >>> from distsim.distributions import Exponential
    >>> from distsim.theory.order_statistics import WorkerTime
    >>> stragglers([WorkerTime(Exponential(0.05))] * 8).summary
    'A step takes one worker 50 ms on average, and the slowest of 8 workers 136 ms, 2.72 times as long; without \
waiting for the slowest 85.9 ms. The slowest of 256 would take 306 ms.'
    """
    if not times:
        raise InputError.of("stragglers(times)", list(times), "there is no worker", "give one WorkerTime per worker")
    if trace is not None and trace.workers != len(times):
        rule = f"must be {len(times)}, one per time"
        raise InputError.of("stragglers(trace): workers", trace.workers, rule, "take the times of its scenario")
    drawn = _compute_seconds(trace) if trace is not None else np.empty((0, len(times)))
    groups = Counter(times)
    mean = sum(count * time.mean_seconds for time, count in groups.items()) / len(times)
    ranks = _ranks(len(times))
    order = {k: expected_order_statistic_seconds(groups, k) for k in ranks}
    growth = _growth(times)
    scale, unit = time_unit(mean)
    by_step = trace is not None and drawn.size > 0 and len(times) > MOST_MARKS
    figure = make_subplots(
        rows=2 if by_step else 1, cols=2, column_widths=[0.58, 0.42], horizontal_spacing=0.1, vertical_spacing=0.17
    )
    _add_distribution(figure, groups, drawn, order[len(times)], scale, unit)
    _add_order(figure, order, mean, scale, unit)
    of_run = PREDICTED if trace is not None and trace.producer == "simulated" else MEASURED
    _add_growth(figure, growth, drawn, of_run, scale, unit)
    which = "workers N" if len(groups) == 1 else "the first N workers"
    figure.update_xaxes(title_text=which, row=1, col=2)
    figure.update_layout(template=template(), height=400, barmode="overlay", bargap=0.0)
    figure.update_layout(margin={"t": 70, "b": 50, "l": 10, "r": 14})
    told = ""
    if by_step:
        figure.update_layout(height=740)
        told = stragglers_by_step.add(figure, drawn, of_run, scale, unit)
    table: list[Row] = [
        {"workers": n, "slowest (ms)": 1e3 * slowest, "slowest but one (ms)": None if but is None else 1e3 * but}
        for n, (slowest, but) in growth.items()
    ]
    return Captioned(figure, _sentence(times, mean, growth, drawn, trace) + told, table)


def of_files(trace: Trace) -> Captioned:
    """Draws the run beside the distribution of its scenario, for `distsim figure`."""
    return stragglers(worker_times(trace.scenario.compute, trace.workers), trace)


def _compute_seconds(trace: Trace) -> Floats:
    """Each worker's compute seconds in each step that all workers ended, shape (steps, workers).

    A step with a cancelled gradient is left out. Raises InputError for FlexRR: its workers do parts of each other's
    steps, so a worker's time is not the time of its step.
    """
    if "scenario" in trace.metadata and isinstance(trace.scenario.policy, FlexRR):
        rule = "must be of a policy whose workers do their own steps, which flexrr's do not"
        raise InputError.of(
            "stragglers(trace): policy", trace.scenario.policy.kind, rule, "draw a run of another policy, or none"
        )
    spans = trace.spans.of_kind(*COMPUTE_KINDS)
    spans = spans.where(spans.worker < trace.workers)
    steps = int(spans.step.max(initial=-1)) + 1
    seconds = np.zeros((steps, trace.workers))
    np.add.at(seconds, (spans.step, spans.worker), spans.end_seconds - spans.start_seconds)
    cut = trace.contributions.where(trace.contributions.cancelled & (trace.contributions.step < steps))
    seconds[cut.step, cut.worker] = 0.0
    return np.asarray(seconds[(seconds > 0.0).all(axis=1)])


def _ranks(workers: int) -> list[int]:
    """The k for which the k-th smallest time is drawn: all, or some if there are many workers; always the last."""
    return sorted(set(np.linspace(1, workers, min(workers, MOST_MARKS)).round().astype(int).tolist()))


def _growth(times: Sequence[WorkerTime]) -> dict[int, tuple[float, float | None]]:
    """For each number N of workers: the expected slowest and slowest but one of the first N workers."""
    alike = len(Counter(times)) == 1
    most = max(LARGEST, len(times)) if alike else len(times)
    counts = sorted({*(2**power for power in range(most.bit_length()) if 2**power <= most), len(times), most})
    found: dict[int, tuple[float, float | None]] = {}
    for count in counts:
        of = Counter({times[0]: count}) if alike else Counter(times[:count])
        but = expected_order_statistic_seconds(of, count - 1) if count > 1 else None
        found[count] = expected_order_statistic_seconds(of, count), but
    return found


def _add_distribution(
    figure: go.Figure, times: Counter[WorkerTime], drawn: Floats, slowest: float, scale: float, unit: str
) -> None:
    """Draws the shares of the times in equal intervals: the expected and the recorded shares."""
    low, high = _reach(times, drawn, slowest)
    edges = np.linspace(low, high, BINS + 1)
    survival = _mean_survival(times, edges)
    middle, width = scale * (edges[:-1] + edges[1:]) / 2, scale * (edges[1] - edges[0])
    figure.add_bar(
        x=middle, y=-100.0 * np.diff(survival), width=width, name="one worker's time, expected",
        marker=marker(COMPUTE), hovertemplate=f"about %{{x:.4g}} {unit}: %{{y:.3g}} % of the steps<extra></extra>",
        row=1, col=1,
    )  # fmt: skip
    if drawn.size:
        counts, _ = np.histogram(drawn, bins=edges)
        figure.add_scatter(
            x=scale * edges, y=np.append(100.0 * counts / drawn.size, 0.0), mode="lines", name="in the run",
            line={"color": INK, "width": 1.5, "shape": "hv"},
            hovertemplate=f"from %{{x:.4g}} {unit}: %{{y:.3g}} % of the steps<extra></extra>",
            row=1, col=1,
        )  # fmt: skip
    figure.update_xaxes(title_text=f"compute time of a step ({unit})", range=[scale * low, scale * high], row=1, col=1)
    figure.update_yaxes(title_text="share of the steps (%)", rangemode="tozero", row=1, col=1)


def _mean_survival(times: Counter[WorkerTime], seconds: Floats) -> Floats:
    """The share of the workers' steps that take longer than this; same shape as `seconds`."""
    return np.asarray(sum(count * time.survival(seconds) for time, count in times.items()) / times.total())


def _reach(times: Counter[WorkerTime], drawn: Floats, slowest: float) -> tuple[float, float]:
    """The ends of the time axis. Hardly any time is outside, and the expected slowest time is inside."""
    ends = np.array([time.slow_factor * time.undisturbed.quantile(np.array([0.001, 1.0 - TAIL])) for time in times])
    paused = max(time.pause_seconds if time.pause_probability else 0.0 for time in times)
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max()) + paused
    if drawn.size:
        low, high = min(low, float(drawn.min())), max(high, float(drawn.max()))
    grid = np.linspace(low, high, 400)
    longer = _mean_survival(times, grid)
    if drawn.size:
        longer = np.maximum(longer, 1.0 - np.searchsorted(np.sort(drawn, axis=None), grid, side="right") / drawn.size)
    high = max(float(grid[longer > TAIL].max(initial=low)), 1.03 * slowest)
    spare = 0.05 * (high - low) or 0.1 * high
    return max(0.0, low - spare), high + spare


def _add_order(figure: go.Figure, order: dict[int, float], mean: float, scale: float, unit: str) -> None:
    """Draws a mark on the time axis for each expected k-th smallest time, and lines at the mean and the slowest."""
    workers = max(order)
    figure.add_scatter(
        x=[scale * seconds for seconds in order.values()], y=[0.0] * len(order), mode="markers",
        name=f"expected k-th of {workers}", cliponaxis=False, customdata=list(order),
        marker={"symbol": "diamond", "size": 10, "color": FORMULA.colour, "line": {"color": INK, "width": 1}},
        hovertemplate=f"k = %{{customdata}} of {workers}: %{{x:.4g}} {unit}<extra></extra>",
        row=1, col=1,
    )  # fmt: skip
    for text, seconds, dash, height in (
        ("mean", mean, "dot", 1.0),
        (f"slowest of {workers}", order[workers], "dash", 0.86),
    ):
        figure.add_shape(
            type="line", x0=scale * seconds, x1=scale * seconds, y0=0.0, y1=1.0, yref="y domain", xref="x",
            line={"color": INK, "width": 1.5, "dash": dash}, name=text,
        )  # fmt: skip
        low, high = figure.layout.xaxis.range
        room = LEFT_PIXELS * (high - scale * seconds) / (high - low)  # right of the line, where few times are
        beside = "right" if room < 6 + LETTER_WIDTH * SMALL * (1 + len(text)) else "left"
        figure.add_annotation(
            x=scale * seconds, y=height, yref="y domain", xref="x", xanchor=beside, yanchor="top",
            xshift=-3 if beside == "right" else 3,
            showarrow=False, text=f"{text}:<br>{show(seconds, 'second')}", align="left", font_size=SMALL,
            bgcolor=LABEL_PAPER,
        )  # fmt: skip


def _add_growth(
    figure: go.Figure,
    growth: dict[int, tuple[float, float | None]],
    drawn: Floats,
    of_run: Look,
    scale: float,
    unit: str,
) -> None:
    """Draws the formula's slowest and slowest but one against the number of workers, and the slowest of the run."""
    counts = list(growth)
    lines: dict[str, tuple[list[float | None], str]] = {
        "expected slowest of N": ([slowest for slowest, _ in growth.values()], "solid"),
        "expected slowest but one": ([but for _, but in growth.values()], "dash"),
    }
    for name, (values, dash) in lines.items():
        figure.add_scatter(
            x=counts, y=[None if value is None else scale * value for value in values], mode="lines+markers",
            name=name, line={"color": FORMULA.colour, "width": 2, "dash": dash}, marker={"size": 6},
            hovertemplate=f"{name}, N = %{{x}}: %{{y:.4g}} {unit}<extra></extra>",
            row=1, col=2,
        )  # fmt: skip
    if drawn.size:
        figure.add_scatter(
            x=[drawn.shape[1]], y=[scale * float(drawn.max(axis=1).mean())], mode="markers",
            name="slowest, mean in the run",
            marker={"symbol": "square", "size": 11, "color": of_run.colour, "line": {"color": INK, "width": 1}},
            hovertemplate=f"in the run, N = %{{x}}: %{{y:.4g}} {unit}<extra></extra>",
            row=1, col=2,
        )  # fmt: skip
    powers = [4**power for power in range(12)] if counts[-1] > 16 else [2**power for power in range(5)]
    figure.update_xaxes(type="log", tickvals=powers, tickformat="d", tickangle=0, row=1, col=2)
    figure.update_yaxes(title_text=f"expected time ({unit})", rangemode="tozero", row=1, col=2)


def _sentence(
    times: Sequence[WorkerTime],
    mean: float,
    growth: dict[int, tuple[float, float | None]],
    drawn: Floats,
    trace: Trace | None,
) -> str:
    workers = len(times)
    slowest, but = growth[workers]
    text = f"A step takes one worker {show(mean, 'second')} on average"
    if but is not None:
        text += (
            f", and the slowest of {workers} workers {show(slowest, 'second')}, {slowest / mean:.3g} times as long; "
            f"without waiting for the slowest {show(but, 'second')}"
        )
    text += "."
    largest = max(growth)
    if largest > workers:
        text += f" The slowest of {largest} would take {show(growth[largest][0], 'second')}."
    if trace is None:
        return text
    if not drawn.size:
        return f"{text} No step that all workers ended was recorded."
    last = float(drawn.max(axis=1).mean())
    took = show(float(drawn.mean()), "second"), show(last, "second")
    return (
        f"{text} In the {trace.producer} run a worker took {took[0]}, and the slowest of each step {took[1]}; "
        f"the expectation is {above_or_below(slowest, last)}."
    )
