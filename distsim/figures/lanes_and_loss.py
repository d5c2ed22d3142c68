"""Policies against each other on one clock: their workers' lanes above, their losses below, one cursor through all.

It is the film of the figure `race`: what the workers do, and what this does to the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate
from typing import Any

import numpy as np

from distsim.errors import InputError
from distsim.figures import theme
from distsim.figures.animation import Animation, pace
from distsim.figures.captioned import Row
from distsim.figures.lanes_scene import DRAWN, LanesScene
from distsim.figures.loss_lines import common_target, line_of
from distsim.figures.loss_scene import LossScene
from distsim.figures.paged_axis import ZOOMS, PagedAxis
from distsim.figures.run_with_loss import RunWithLoss, on_page
from distsim.figures.wording import counted
from distsim.learning.curve import Curve
from distsim.trace import COMPUTE_KINDS, Trace
from distsim.units import show

MOST_RUNS, MOST_RANKS, MOST_BARS = len(theme.RUNS), 64, 30_000
MOST_MOMENTS = 60  # to which steps go
WIDTH, LEFT, RIGHT = 940, 78, 14  # pixels of the still picture; names hang out at the left of a scene
ROUNDING = 1e-7  # of a moment on the page
STILL = 0.62  # the share of the first page at which the still picture is
FEWEST_PIXELS, AXIS_PIXELS = 7.0, 850  # of the computing of a step, where the axis has so many pixels


@dataclass(frozen=True)
class LanesAndLoss(Animation):
    """The animation of runs. lanes: one for each run. losses: of all runs."""

    lanes: Sequence[LanesScene] = field(repr=False)
    losses: LossScene = field(repr=False)

    NAME, TITLE, MOMENT, TABLE = "lanes_and_loss", "workers and loss", "update", "The runs"
    LEGEND = (
        "Each row is a worker or a server; where it is grey, it waits. A dotted line is an update. The mark of a run "
        "stands on its loss. The staleness is the mean of all gradients so far. Another run gives another race."
    )

    @property
    def scenes(self) -> list[LanesScene | LossScene]:
        """All pictures, from top to bottom."""
        return [*self.lanes, self.losses]

    @property
    def kind(self) -> str:
        """All figures have the same colours."""
        return "of-runs"

    @property
    def colours(self) -> dict[str, str]:
        """The colour of each run, and those of what workers do."""
        runs = {f"r{number}": look.colour for number, look in enumerate(theme.RUNS)}
        return runs | {name: look.colour for look, name in DRAWN.items()} | {"wait": theme.WAIT.colour}

    def more_controls(self) -> str:
        """The length of a page, and which runs are shown."""
        zooms = "".join(
            f'<option value="{zoom}"{" selected" if zoom == self.losses.axis.zoom else ""}>'
            f"{show(self.losses.axis.end_seconds / zoom, 'second')}</option>"
            for zoom in ZOOMS
        )
        runs = "".join(
            f'<label><input type="checkbox" value="{scene.run.number}" checked autocomplete="off"> '
            f"{escape(scene.run.name)}</label>"
            for scene in self.lanes
        )
        shown = f'<span class="runs" role="group" aria-label="Runs that are shown">{runs}</span>'
        return f'<label>page <select class="zoom" autocomplete="off">{zooms}</select></label>{shown}'

    def pictures(self) -> str:
        """The lanes of each run, and below them the losses."""
        key = "".join(
            f'<span><svg width="16" height="12" aria-hidden="true"><rect class="{name}" width="16" height="12"/></svg> '
            f"{look.name}</span>"
            for look, name in [*DRAWN.items(), (theme.WAIT, "ground")]
        )
        scenes = "".join(scene.svg(self.still_seconds) for scene in self.scenes)
        return f'<p class="key">{key}</p>{scenes}'

    def content(self) -> dict[str, Any]:
        """The axis of time, each run, and the axis of the losses."""
        axis, moments = self.losses.axis, max(len(scene.moments_seconds) for scene in self.lanes)
        return {
            "end": axis.end_seconds,
            "still": self.still_seconds,
            "pace": pace(axis.end_seconds, moments),
            "axis": axis.content(),
            "runs": [scene.content() for scene in self.lanes],
            "losses": self.losses.content(),
        }

    def placed(self) -> tuple[int, int, str]:
        """All scenes below each other."""
        tops = list(accumulate((scene.height for scene in self.scenes), initial=0))
        drawn = "".join(
            scene.svg(self.still_seconds, f'x="{LEFT}" y="{top}" width="{WIDTH - LEFT - RIGHT}"')
            for scene, top in zip(self.scenes, tops[:-1], strict=True)
        )
        return WIDTH, tops[-1], f'<rect class="paper" width="{WIDTH}" height="{tops[-1]}"/>{drawn}'


def lanes_and_loss(traces: Mapping[str, Trace], curves: Mapping[str, Curve]) -> LanesAndLoss:
    """Runs on one clock: above, what each worker does; below, the loss. One cursor goes through all.

    traces: the runs by name, simulated or measured. curves: by the same names, the loss of each run, as
    `distsim.learning.replay` makes it from the trace. All runs are shown until the first of them ends. The target is
    the lowest loss that all runs reach.

    Raises InputError where there is nothing to draw, where the names differ, or where there are more than 5 runs, 64
    ranks in a run, or 30,000 bars; where a run takes no time, or has no loss.

    >>> from distsim import example, simulate
    >>> from distsim.learning.optimizers import Sgd
    >>> from distsim.learning.quadratic import Quadratic
    >>> from distsim.learning.replay import replay
    >>> scenario = example("backup_server").replacing({"policy": {"kind": "synchronous"}, "steps": 30})
    >>> kinds = ("synchronous", "asynchronous")
    >>> traces = {kind: simulate(scenario.replacing({"policy.kind": kind})) for kind in kinds}
    >>> curves = {kind: replay(trace, Quadratic(), Sgd(rate=0.1), batch=8) for kind, trace in traces.items()}
    >>> lanes_and_loss(traces, curves).summary.partition(";")[0]
    'Asynchronous is first at a loss of 0.754, after 225 ms'
    """
    _check(traces, curves)
    end = on_page(min(_end(traces[name], curves[name]) for name in traces))
    runs = [
        RunWithLoss(number, name, trace, curves[name], line_of(name, [_until(curves[name], end)], "seconds"))
        for number, (name, trace) in enumerate(traces.items())
    ]
    lines = [run.line for run in runs]
    target = common_target(lines) if len(runs) > 1 else None
    axis = PagedAxis(end, _zoom(runs, end))
    fewest = min(runs, key=lambda run: run.updates_at(end))
    lanes = [LanesScene(run, axis, _moments(run, end) if run is fewest else ()) for run in runs]
    rows: list[Row] = [
        {
            "run": run.name, "updates": run.updates_at(end), "mean staleness": run.staleness_at(end),
            "median loss of the last tenth": run.line.last, "first at the target (s)": _reached(run, target),
        }
        for run in runs
    ]  # fmt: skip
    losses = LossScene(runs, axis, target)
    return LanesAndLoss(_sentence(runs, target, end), rows, STILL * end / axis.zoom, lanes, losses)


def _check(traces: Mapping[str, Trace], curves: Mapping[str, Curve]) -> None:
    asked = "lanes_and_loss(traces, curves)"
    if not traces:
        raise InputError.of(asked, "{}", "there is nothing to draw", "take at least one run")
    if list(traces) != list(curves):
        names = f"{', '.join(traces)}; {', '.join(curves)}"
        raise InputError.of(asked, names, "must have the same names in the same order", "replay each of the traces")
    if len(traces) > MOST_RUNS:
        raise InputError.of(asked, counted(len(traces), "run"), f"must be at most {MOST_RUNS}", "draw some of them")
    for name, trace in traces.items():
        trace.check_whole(f"{asked}, {name}")
        ranks = trace.workers + trace.servers
        if ranks > MOST_RANKS or len(trace.spans) > MOST_BARS:
            what = f"{name}: {counted(ranks, 'rank')}, {counted(len(trace.spans), 'span')}"
            rule = f"must have at most {MOST_RANKS} ranks and {MOST_BARS:,} spans"
            raise InputError.of(asked, what, rule, "take fewer workers or steps")
        if not len(trace.updates) or not len(curves[name].loss):
            raise InputError.of(asked, name, "must have at least one update and one loss", "take a longer run")
        if not np.isfinite(curves[name].loss[0]):
            raise InputError.of(asked, name, "must begin with a finite loss", "replay it from another start")
    if min(_end(traces[name], curves[name]) for name in traces) <= 0.0:
        raise InputError.of(asked, "0 s", "must last longer", "take runs in which computing or messages take time")


def _end(trace: Trace, curve: Curve) -> float:
    return min(trace.total_seconds, float(curve.seconds[-1]))


def _until(curve: Curve, end_seconds: float) -> Curve:
    """The rows of the curve until the end of the figure."""
    kept = curve.seconds <= end_seconds * (1.0 + ROUNDING)
    columns = ("update", "samples", "seconds", "loss", "accuracy")
    return replace(curve, **{name: getattr(curve, name)[kept] for name in columns})


def _zoom(runs: Sequence[RunWithLoss], end_seconds: float) -> int:
    """The fewest pages on which the computing of a step is wide enough to be seen."""
    found = []
    for run in runs:
        own = run.trace.spans.of_kind(*COMPUTE_KINDS)
        found += [float(np.mean(own.end_seconds - own.start_seconds))] if len(own) else []
    pixels = AXIS_PIXELS * max(found, default=end_seconds) / end_seconds
    return next((zoom for zoom in ZOOMS if zoom * pixels >= FEWEST_PIXELS), ZOOMS[-1])


def _moments(run: RunWithLoss, end_seconds: float) -> list[float]:
    """The start, the updates of the run or, where they are many, some of them, and the end."""
    times = run.updates_seconds[run.updates_seconds < end_seconds]
    some = times[np.unique(np.linspace(0, len(times) - 1, MOST_MOMENTS).round().astype(int))] if len(times) else times
    return [0.0, *some.tolist(), end_seconds]


def _reached(run: RunWithLoss, target: float | None) -> float | None:
    return None if target is None else run.line.reaches(target)


def _sentence(runs: Sequence[RunWithLoss], target: float | None, end_seconds: float) -> str:
    sound = [run for run in runs if run.line.whole]
    at_the_end = "".join(f"{run.name} diverges. " for run in runs if not run.line.whole)
    if sound:
        lowest = min(sound, key=lambda run: run.line.last)
        has = f"{lowest.name} has the lowest median loss," if len(runs) > 1 else "the median loss is"
        at_the_end += f"Over the last tenth of {show(end_seconds, 'second')}, {has} {lowest.line.last:.3g}."
    reached = sorted((time, run.name) for run in runs for time in [_reached(run, target)] if time is not None)
    if len(reached) < 2:
        return at_the_end.strip()
    others = " and ".join(f"{name} after {show(time, 'second')}" for time, name in reached[1:])
    first, name = reached[0]
    name = name[0].upper() + name[1:]
    return f"{name} is first at a loss of {target:.3g}, after {show(first, 'second')}; {others}. {at_the_end}".strip()
