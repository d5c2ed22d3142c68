"""Advice whether and how to distribute a training, from the memory and the time that a job needs on one device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import GRID, INK, RUNS, SMALL, template
from distsim.theory.arguments import above
from distsim.theory.memory import devices_to_hold
from distsim.units import show

DAY = 86400.0
HEIGHT = 520
SPARE = 10.0  # an axis reaches to ten times the value of the outermost job
NAME = 10.0  # the left and right ends are ten times further out, for the names of jobs
ONE, DATA, MODEL, BOTH, BOUND = (
    "one device",
    "data parallelism",
    "model or pipeline parallelism",
    "model and data parallelism",
    "train where the data are",
)
MARKS = {  # colour and mark of each answer
    ONE: (RUNS[0].colour, "circle"),
    DATA: (RUNS[1].colour, "square"),
    MODEL: (RUNS[2].colour, "triangle-up"),
    BOTH: (RUNS[3].colour, "diamond"),
    BOUND: (RUNS[4].colour, "star"),
}


@dataclass(frozen=True)
class Job:
    """A training. state_bytes: of parameters, gradients and optimizer state. operations: of the whole training.

    bound: whether the data must stay at the many places that hold them.
    """

    name: str
    state_bytes: float
    operations: float
    bound: bool = False

    def __post_init__(self) -> None:
        above(0, state_bytes=self.state_bytes, operations=self.operations)


def decision(
    jobs: Sequence[Job], device_bytes: float, operations_per_second: float, patience_seconds: float
) -> Captioned:
    """Draws each job by two ratios: state over the memory of a device, and time on one device over your patience.

    If the first ratio is above 1, split the model; if the second is above 1, split the work. If the data may not move,
    train where the data are. Activations need memory beside the state, so a job just below the line does not fit.

    device_bytes: memory of one device. operations_per_second: the rate that a device reaches. patience_seconds:
    how long the training may take. Raises InputError where one of these three is not above 0.

    >>> jobs = [Job("small", 1e9, 1e18), Job("large", 1e12, 1e23)]
    >>> decision(jobs, device_bytes=80e9, operations_per_second=1e14, patience_seconds=7 * DAY).summary
    'small: one device. large: model and data parallelism.'
    """
    above(0, device_bytes=device_bytes, operations_per_second=operations_per_second, patience_seconds=patience_seconds)
    names = [job.name for job in jobs]
    if len(set(names)) < len(names):
        raise InputError.of("decision(jobs)", names, "must have a name each", "tell them apart")
    points = [
        (job.state_bytes / device_bytes, job.operations / operations_per_second / patience_seconds) for job in jobs
    ]
    answers = [_answer(job, *point) for job, point in zip(jobs, points, strict=True)]
    figure = go.Figure()
    for answer, (colour, mark) in MARKS.items():
        chosen = [place for place, one in enumerate(answers) if one == answer]
        figure.add_scatter(
            x=[points[place][0] for place in chosen], y=[points[place][1] for place in chosen],
            text=[f" {names[place]} " for place in chosen], mode="markers+text",
            name=f"data may not move: {answer}" if answer == BOUND else answer,
            textposition=[f"middle {'right' if points[place][0] > 1.0 else 'left'}" for place in chosen],
            showlegend=answer == BOUND and bool(chosen),  # the other answers are named in the corners
            marker={"color": colour, "symbol": mark, "size": 14, "line": {"color": INK, "width": 1}},
            hovertemplate="%{text}: %{x:.3g} of a device's memory, %{y:.3g} of your patience<extra></extra>",
            cliponaxis=False,
        )  # fmt: skip
    across, up = (_reach([point[axis] for point in points]) for axis in (0, 1))
    across = (across[0] / NAME, NAME * across[1])
    corners = {ONE: (0, 0), DATA: (0, 1), MODEL: (1, 0), BOTH: (1, 1)}
    for answer, (right, top) in corners.items():
        figure.add_shape(
            type="rect", layer="below", line_width=0, fillcolor=MARKS[answer][0], opacity=0.12,
            x0=(across[0], 1.0)[right], x1=(1.0, across[1])[right], y0=(up[0], 1.0)[top], y1=(1.0, up[1])[top],
        )  # fmt: skip
        figure.add_annotation(
            text=f"<b>{answer}</b>", showarrow=False, font={"size": SMALL + 1}, xref="x domain", yref="y domain",
            x=float(right), y=float(top), xanchor=("left", "right")[right], yanchor=("bottom", "top")[top],
        )  # fmt: skip
    edge = {"color": INK, "width": 1.5, "dash": "dash"}
    figure.add_vline(x=1.0, line=edge)
    figure.add_hline(y=1.0, line=edge)
    figure.update_layout(template=template(), height=HEIGHT, margin={"t": 60, "b": 60, "l": 10, "r": 14})
    axis = {"type": "log", "dtick": 1, "gridcolor": GRID, "exponentformat": "power"}
    gigabytes = f"state of the model / memory of a device ({show(device_bytes, 'byte')})"
    days = f"time on one device / your patience ({patience_seconds / DAY:.3g} days)"
    figure.update_xaxes(title_text=gigabytes, range=[math.log10(end) for end in across], **axis)
    figure.update_yaxes(title_text=days, range=[math.log10(end) for end in up], **axis)
    sentence = " ".join(f"{name}: {answer}." for name, answer in zip(names, answers, strict=True))
    return Captioned(figure, sentence or "There is no job, so nothing is drawn.", [
        _row(job, answer, device_bytes, operations_per_second) for job, answer in zip(jobs, answers, strict=True)
    ])  # fmt: skip


def _answer(job: Job, memory: float, time: float) -> str:
    if job.bound:
        return BOUND
    return ((ONE, DATA), (MODEL, BOTH))[memory > 1.0][time > 1.0]


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis, with 1 well inside."""
    return min([0.1, *values]) / SPARE, max([10.0, *values]) * SPARE


def _row(job: Job, answer: str, device_bytes: float, operations_per_second: float) -> Row:
    return {
        "job": job.name,
        "state (GB)": job.state_bytes / 1e9,
        "devices to hold it": devices_to_hold(job.state_bytes, device_bytes),
        "days on one device": job.operations / operations_per_second / DAY,
        "data may move": "no" if job.bound else "yes",
        "answer": answer,
    }
