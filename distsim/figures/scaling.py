"""Speed-up and efficiency against the number of workers: predicted and measured, beside the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import DASHES, GRID, INK, MARKS, RUNS, template
from distsim.figures.wording import above_or_below, counted
from distsim.metrics import UnavailableError, throughput_samples_per_second
from distsim.trace import Trace

SPEED_UP, EFFICIENCY = "speed-up", "efficiency (%)"
POWERS = [2**power for power in range(20)]
SLOWER = 0.99  # as a share of the best speed-up; above this, a difference may be rounding or chance
FEW = 4  # powers of two; if there are more, only every second power has a number


@dataclass(frozen=True)
class SpeedUps:
    """The speed-ups over one worker for several numbers of workers: one curve of the figure.

    name: curves of one name, such as a prediction and its measurement, share their colour. workers: increasing. values:
    of the same length. low, high: the ends of error bars, or None. points: whether to draw marks and not a line, as for
    measured values. reported: the points are not measured here but reported by others, and the figure says so.
    """

    name: str
    workers: Sequence[int]
    values: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    points: bool = False
    reported: bool = False

    def __post_init__(self) -> None:
        columns = [column for column in (self.values, self.low, self.high) if column is not None]
        if any(len(column) != len(self.workers) for column in columns):
            rule = f"must be {len(self.workers)} values, one for each number of workers"
            raise InputError.of(f"SpeedUps({self.name!r})", [len(column) for column in columns], rule, "give as many")
        if any(count < 1 for count in self.workers) or any(np.diff(self.workers) <= 0):
            rule = "must be counts of at least 1 that increase"
            raise InputError.of(f"SpeedUps({self.name!r}): workers", list(self.workers), rule, "sort them")
        if not all(np.isfinite(value) and value >= 0.0 for column in columns for value in column):
            rule = "must be finite and not below 0"
            raise InputError.of(f"SpeedUps({self.name!r}): values", list(self.values), rule, "leave such values out")

    @classmethod
    def of_traces(cls, name: str, traces: Sequence[Trace]) -> SpeedUps:
        """Throughputs of runs over the throughput of one worker. Repeats give a median, and their range as error bars.

        Measured runs are points. If the run of one worker has no update, the curve has no values.

        Raises InputError where no run has one worker, the runs differ in more than the number of workers, or a trace
        is a part of a run.

        >>> import distsim
        >>> ring = distsim.example("synchronous_ring")
        >>> runs = [distsim.simulate(ring.replacing({"cluster.workers": workers})) for workers in (1, 2, 4)]
        >>> [round(value, 2) for value in SpeedUps.of_traces("ring", runs).values]
        [1.0, 1.59, 2.6]
        """
        for trace in traces:
            trace.check_whole(f"{name}: traces")
        runs = sorted(traces, key=lambda trace: trace.workers)
        if not runs or runs[0].workers != 1:
            counts = [trace.workers for trace in runs]
            rule = "must have a run of one worker, to which the others are compared"
            raise InputError.of(f"{name}: workers", counts, rule, "run cluster.workers = 1 too")
        _check_alike(name, runs)
        throughputs = {
            workers: [_throughput(trace) for trace in group]
            for workers, group in groupby(runs, key=lambda trace: trace.workers)
        }
        alone = float(np.median(throughputs[1]))
        if not alone:
            return cls(name, [], [], points=True)
        ends = np.array([np.quantile(found, [0.0, 0.5, 1.0]) for found in throughputs.values()]) / alone
        low, values, high = ends.T.tolist()
        repeated = max(map(len, throughputs.values())) > 1
        points = any(trace.producer == "measured" for trace in runs)
        return cls(name, list(throughputs), values, low if repeated else None, high if repeated else None, points)


def _check_alike(name: str, runs: Sequence[Trace]) -> None:
    """Raises InputError where the runs differ in one of the settings of `_setting`."""
    first = _setting(runs[0])
    for run in runs[1:]:
        setting = _setting(run)
        differing = [key for key in sorted({*first, *setting}) if first.get(key) != setting.get(key)]
        if differing:
            rule = "must be the same in all its runs: only the number of workers may differ, the seed and the steps"
            raise InputError.of(f"{name}: {differing[0]}", setting.get(differing[0]), rule, "draw one curve for each")


def _setting(trace: Trace) -> dict[str, Any]:
    """The settings that must be equal, by dotted keys. One worker has no backups, so the number of backups may differ.

    A calibration has other links for each number of workers, so the links of calibrated runs may differ, too.
    """
    free = {"name", "seed", "steps", "cluster.workers", "policy.backups"}
    if "calibration" in trace.metadata:
        free |= {"cluster.bandwidth", "cluster.latency", "compute.added"}
    found: dict[str, Any] = {}
    for key, value in trace.scenario.table().items():
        found |= {f"{key}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    return {key: value for key, value in found.items() if key not in free}


def _throughput(trace: Trace) -> float:
    try:
        return throughput_samples_per_second(trace)
    except UnavailableError:  # no update was recorded
        return 0.0


def scaling(*curves: SpeedUps) -> Captioned:
    """Draws the speed-up over one worker, and the efficiency (speed-up per worker); a dotted line is the ideal.

    Raises InputError where there is no curve.

    >>> from distsim.theory.scaling import speed_up
    >>> counts = [1, 2, 4, 8, 16]
    >>> ring, server = (SpeedUps(kind, counts, [speed_up(kind, 0.1, n) for n in counts]) for kind in ("ring", "server"))
    >>> scaling(ring, server).summary
    'On 16 workers: ring 13.5 times as fast as one worker, an efficiency of 84 %; server 3.81 times, 24 %.'
    """
    if not curves:
        raise InputError.of("scaling(curves)", curves, "there is nothing to draw", "pass at least one SpeedUps")
    names = list(dict.fromkeys(curve.name for curve in curves))
    counts = sorted({workers for curve in curves for workers in curve.workers})
    figure = make_subplots(cols=2, horizontal_spacing=0.06)
    reach = [1, max(counts, default=1)]
    for panel, ideal in ((1, reach), (2, [100.0, 100.0])):
        figure.add_scatter(
            x=reach, y=ideal, mode="lines", name="ideal", legendgroup="ideal", showlegend=panel == 1,
            line={"color": INK, "width": 1.5, "dash": "dot"}, hoverinfo="skip",
            row=1, col=panel,
        )  # fmt: skip
    for curve in curves:
        _add_curve(figure, curve, names.index(curve.name))
    figure.update_layout(template=template(), height=400, margin={"t": 60, "b": 50, "l": 10, "r": 14})
    powers = [power for power in POWERS if power <= reach[1]]
    ticks = powers if len(powers) <= 2 * FEW else powers[::2]
    spare = 0.05 * max(np.log10(reach[1]), 1.0)
    figure.update_xaxes(title_text="workers", type="log", tickvals=ticks, range=[-spare, np.log10(reach[1]) + spare])
    parts = _parts(curves)
    figure.update_yaxes(
        title_text="speed-up over one worker", type="log", row=1, col=1,
        tickvals=[*(1 / part for part in parts), *ticks], ticktext=[*(f"1/{part}" for part in parts), *map(str, ticks)],
    )  # fmt: skip
    figure.update_yaxes(
        title_text="efficiency: speed-up per worker (%)", range=[0, _highest(curves)], side="right", row=1, col=2
    )
    figure.update_yaxes(gridcolor=GRID)
    return Captioned(figure, _sentence(curves), _table(curves, counts))


def of_files(*traces: Trace) -> Captioned:
    """Draws a curve for each policy, kind of communication and producer of the runs, for `distsim figure`."""
    runs: dict[str, list[Trace]] = {}
    for trace in traces:
        name = f"{trace.scenario.policy.kind}, {trace.scenario.communication.kind}, {trace.producer}"
        runs.setdefault(name.replace("_", " "), []).append(trace)
    return scaling(*(SpeedUps.of_traces(name, found) for name, found in runs.items()))


def _called(curve: SpeedUps, curves: Sequence[SpeedUps]) -> str:
    """A curve's name. If a line and points share the name, the points get the word "measured" or "reported"."""
    shared = any(other.name == curve.name and other.points != curve.points for other in curves)
    return _of_points(curve) if shared else curve.name


def _of_points(curve: SpeedUps) -> str:
    return f"{curve.name}, {'reported' if curve.reported else 'measured'}" if curve.points else curve.name


def _parts(curves: Sequence[SpeedUps]) -> list[int]:
    """The powers p for which the axis shows the speed-up 1/p, since a curve falls so low."""
    slowest = min((value for curve in curves for value in curve.values if value > 0.0), default=1.0)
    parts = [power for power in POWERS[1:] if 1 / power >= slowest]
    return parts if len(parts) <= FEW else parts[1::2]


def _highest(curves: Sequence[SpeedUps]) -> float:
    """The top of the efficiency axis, in percent. Error bars and speed-ups above the ideal stay inside."""
    tops = [
        100.0 * value / workers
        for curve in curves
        for workers, value in zip(curve.workers, curve.high or curve.values, strict=True)
    ]
    return max(110.0, 1.05 * max(tops, default=0.0))


def _add_curve(figure: go.Figure, curve: SpeedUps, number: int) -> None:
    colour = RUNS[number % len(RUNS)].colour
    workers, values = np.array(curve.workers, dtype=float), np.array(curve.values)
    name = _of_points(curve)
    for panel, per in ((1, np.ones(len(workers))), (2, workers / 100.0)):
        bars = None
        if curve.low is not None and curve.high is not None:
            up, down = np.array(curve.high) - values, values - np.array(curve.low)
            bars = {"array": up / per, "arrayminus": down / per, "color": INK, "thickness": 1.2, "width": 5}
        figure.add_scatter(
            x=workers, y=values / per, error_y=bars, mode="markers" if curve.points else "lines+markers",
            name=name, legendgroup=name, showlegend=panel == 1,
            line={"color": colour, "width": 2, "dash": DASHES[number % len(DASHES)]},
            marker={
                "color": colour, "symbol": MARKS[number % len(MARKS)], "size": 8 if curve.points else 5,
                "line": {"color": INK, "width": 1 if curve.points else 0},
            },
            hovertemplate=f"{name}, %{{x}} workers: %{{y:.3g}}{'' if panel == 1 else ' %'}<extra></extra>",
            row=1, col=panel,
        )  # fmt: skip


def _table(curves: Sequence[SpeedUps], counts: Sequence[int]) -> list[Row]:
    rows: list[Row] = []
    for count in counts:
        row: dict[str, str | float | int | None] = {"workers": count}
        for curve in curves:
            found = dict(zip(curve.workers, curve.values, strict=True)).get(count)
            name = _called(curve, curves)
            row[f"{name}: {SPEED_UP}"] = found
            row[f"{name}: {EFFICIENCY}"] = None if found is None else 100.0 * found / count
        rows.append(row)
    return rows


def _sentence(curves: Sequence[SpeedUps]) -> str:
    """The speed-up at the end of each curve, and the best drawn number of workers where a curve falls."""
    drawn = sorted((curve for curve in curves if len(curve.workers)), key=lambda curve: curve.workers[-1])
    if not drawn:
        return "No update of one worker was recorded, so nothing is drawn."
    parts: list[str] = []
    for end, group in groupby(drawn, key=lambda curve: curve.workers[-1]):
        reached = [
            f"{_called(curve, curves)} {curve.values[-1]:.3g} times{'' if place else ' as fast as one worker'}, "
            f"{'' if place else 'an efficiency of '}{100.0 * curve.values[-1] / end:.0f} %"
            for place, curve in enumerate(group)
        ]
        parts.append(f"On {counted(end, 'worker')}: {'; '.join(reached)}.")
    for curve in drawn:
        best = int(np.argmax(curve.values))
        if curve.values[-1] < SLOWER * curve.values[best] and not curve.points:
            most = f"{counted(curve.workers[best], 'worker')} {'is' if curve.workers[best] == 1 else 'are'}"
            parts.append(f"{_called(curve, curves)}: of the numbers drawn, {most} the fastest.")
    return " ".join([*parts, *_errors(drawn)])


def _errors(curves: Sequence[SpeedUps]) -> list[str]:
    """The error of each line against the points of the same name, at the most workers that both have."""
    found = []
    for line, points in permutations(curves, 2):
        if line.name != points.name or line.points or not points.points:
            continue
        said, took = (dict(zip(curve.workers, curve.values, strict=True)) for curve in (line, points))
        both = [count for count in said if count > 1 and took.get(count)]
        if both:
            most = max(both)
            error = above_or_below(said[most], took[most])
            against = "report" if points.reported else "measurement"
            found.append(f"On {counted(most, 'worker')} the prediction of {line.name} is {error} the {against}.")
    return found
