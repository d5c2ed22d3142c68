"""The trials of searches: which worker trains which trial, and when; searches stand one above the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import FONT_SIZE, INK, RUNS, SMALL, Look, chunk_colours, marker, template
from distsim.figures.wording import above_or_below, counted, enumerated, time_unit
from distsim.search.job import Placed, search_seconds
from distsim.units import show

LANE_PIXELS, FRAME_PIXELS, GAP_PIXELS = 30, 120, 46
BAR = 0.78  # of a lane
LEAST_SHARE = 0.035  # of the axis that a bar has, in which the number of its trial stands


def trials(searches: Mapping[str, Sequence[Placed]], by: str) -> Captioned:
    """Draws a lane for each worker and a bar for each job, with the number of its trial.

    searches: for each name the jobs of a search, simulated or measured, on one axis of time. by: the setting whose
    values have colours.

    Raises InputError for no search, a search without jobs, and a job without that setting.

    >>> from distsim.search.clock import simulated_search
    >>> from distsim.search.sources import Queue
    >>> queue = Queue([{"batch": 8}, {"batch": 32}, {"batch": 512}], epochs=1)
    >>> found = simulated_search(queue, 2, lambda job: (80.0 / job.settings["batch"], 0.0))
    >>> trials({"in turn": found}, by="batch").summary
    'in turn: 3 jobs end after 10 s, and workers train for 63 % of the time.'
    """
    if not searches:
        raise InputError.of("searches", dict(searches), "must hold a search", "give it a name and its jobs")
    looks = _looks(searches, by)
    ends = {name: search_seconds(placed) for name, placed in searches.items()}
    scale, unit = time_unit(max(ends.values()))
    lanes = {name: 1 + max(one.worker for one in placed) for name, placed in searches.items()}
    height = FRAME_PIXELS + LANE_PIXELS * sum(lanes.values()) + GAP_PIXELS * (len(searches) - 1)
    figure = make_subplots(
        rows=len(searches), cols=1, shared_xaxes=True, subplot_titles=list(searches),
        row_heights=[float(count) for count in lanes.values()],
        vertical_spacing=GAP_PIXELS / (height - FRAME_PIXELS) if len(searches) > 1 else 0.0,
    )  # fmt: skip
    least = LEAST_SHARE * max(ends.values())
    for number, (name, placed) in enumerate(searches.items(), 1):
        for value, look in looks.items():
            own = [one for one in placed if one.job.settings[by] == value]
            if own:
                figure.add_trace(_bars(own, look, scale, unit, least), row=number, col=1)
        ticks = list(range(lanes[name]))
        figure.update_yaxes(
            range=[lanes[name] - 0.5, -0.5], tickvals=ticks, ticktext=[f"worker {tick}" for tick in ticks],
            row=number, col=1,
        )  # fmt: skip
    shown = set[str]()
    for bar in figure.data:
        bar.showlegend = bar.name not in shown
        shown.add(bar.name)
    figure.update_layout(
        template=template(), height=height, barmode="overlay", margin={"t": 64, "b": 50, "l": 10, "r": 20},
        legend={"y": 1.0, "yref": "container", "yanchor": "top"},
    )  # fmt: skip
    figure.update_annotations(x=0.0, xanchor="left", font={"size": FONT_SIZE, "color": INK})
    figure.update_xaxes(range=[0.0, 1.02 * max(ends.values()) * scale])
    figure.update_xaxes(title_text=f"time ({unit})", row=len(searches), col=1)
    table = [row for name, placed in searches.items() for row in _rows(name, placed)]
    return Captioned(figure, _summary(searches, lanes, ends), table)


def _looks(searches: Mapping[str, Sequence[Placed]], by: str) -> dict[float, Look]:
    """A look for each value of the setting."""
    for name, placed in searches.items():
        for one in placed:
            if by not in one.job.settings:
                known = enumerated(list(one.job.settings)) or "no setting"
                raise InputError.of("by", by, f"is no setting of a trial of {name}, which has {known}", "name another")
    values = sorted({one.job.settings[by] for placed in searches.values() for one in placed})
    return {
        value: Look(f"{by} {value:g}", colour, RUNS[number % len(RUNS)].pattern)
        for number, (value, colour) in enumerate(zip(values, chunk_colours(len(values)), strict=True))
    }


def _bars(placed: Sequence[Placed], look: Look, scale: float, unit: str, least: float) -> go.Bar:
    return go.Bar(
        orientation="h", width=BAR, name=look.name, legendgroup=look.name,
        base=[one.start_seconds * scale for one in placed], x=[one.seconds * scale for one in placed],
        y=[one.worker for one in placed],
        marker=marker(look),
        text=[f"<b>{one.job.trial}</b>" if one.seconds >= least else "" for one in placed],
        textposition="inside", insidetextanchor="middle", textangle=0, insidetextfont={"color": INK, "size": SMALL},
        customdata=[[one.job.trial, one.job.label, one.job.before, one.job.until] for one in placed],
        hovertemplate=f"trial %{{customdata[0]}}: %{{customdata[1]}}<br>epochs %{{customdata[2]}} to "
        f"%{{customdata[3]}}: %{{x:.4g}} {unit}<extra></extra>",
    )  # fmt: skip


def _summary(searches: Mapping[str, Sequence[Placed]], lanes: Mapping[str, int], ends: Mapping[str, float]) -> str:
    told = []
    first = next(iter(searches))
    for name, placed in searches.items():
        busy = 100 * sum(one.seconds for one in placed) / (lanes[name] * ends[name])
        beside = f" ({above_or_below(ends[name], ends[first])} “{first}”)" if name != first else ""
        told.append(
            f"{name}: {counted(len(placed), 'job')} end after {show(ends[name], 'second')}{beside}, and workers train "
            f"for {busy:.0f} % of the time"
        )
    return "; ".join(told) + "."


def _rows(name: str, placed: Sequence[Placed]) -> list[Row]:
    return [
        {
            "search": name, "trial": one.job.trial, "settings": one.job.label,
            "epochs": f"{one.job.before} to {one.job.until}", "worker": one.worker,
            "from": show(one.start_seconds, "second"), "to": show(one.end_seconds, "second"),
        }
        for one in placed
    ]  # fmt: skip
