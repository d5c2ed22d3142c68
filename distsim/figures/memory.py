"""The bytes that the workers of a run hold over time: of one worker by kind, and of the others in all."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Integers
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import INK, RUNS, template
from distsim.figures.timeline_lanes import Window, end_of_steps
from distsim.figures.wording import byte_unit
from distsim.memory import OPTIMIZERS, not_counted
from distsim.memory_over_time import KINDS, MemoryOverTime, held_over_time
from distsim.trace import Trace
from distsim.units import show

MOST_RANKS = 16  # of more, one worker is drawn alone; but for the stages of a pipeline, all hold alike
STEPS = 3  # drawn unless told otherwise; mostly, all steps are alike
MOST_CELLS = 1000  # parts of the time; of a run with more moments, the one with most is drawn for each part
ROUNDING = 1e-9  # of the most
LOOKS = dict(zip(KINDS, RUNS, strict=False))


def memory(
    trace: Trace, optimizer: str = "adam", worker: int | None = None, start_seconds: float = 0.0,
    end_seconds: float | None = None,
) -> Captioned:  # fmt: skip
    """Draws the bytes of tensors that a worker holds over time, by kind; of up to 16 workers, all totals.

    The bytes are counted from the scenario, and the moments are those of the trace. Activations are known where a
    profile tells them.

    optimizer: whose numbers are held beside parameters and gradients, see `distsim.memory`. worker: None takes the one
    that holds most. start_seconds, end_seconds: what is drawn; None ends it after the first steps. The sentence and
    the table tell of the whole run, until its last update. Raises InputError where the run has no such worker, the
    trace is a part of a run, the window is empty, and for another optimizer.

    >>> import distsim
    >>> memory(distsim.simulate(distsim.example("synchronous_ring"))).summary    # doctest: +ELLIPSIS
    'Worker 0 holds at most 16.8 MB, at 0 s: parameters 4.19 MB, gradients 4.19 MB, optimizer (adam) \
8.39 MB. Activations are not counted, since the workload has no profile. Drawn: 0 s to ...'
    """
    if worker is not None and worker not in range(trace.workers):
        rule = f"is not a worker of this run, which has {trace.workers}"
        raise InputError.of("memory(worker)", worker, rule, "take 0, or leave it out")
    trace.check_whole("memory(trace)")
    few, alike = trace.workers <= MOST_RANKS, trace.scenario.policy.kind != "pipeline"
    ranks = {0} if alike and not few else {*range(trace.workers)}
    found = {rank: held_over_time(trace, rank, optimizer) for rank in ranks | {worker or 0}}
    chosen = max(found, key=lambda rank: found[rank].total.max()) if worker is None else worker
    most = found[chosen]
    if not few:
        found = {chosen: most}
    scale, unit = byte_unit(most.total.max())
    figure = go.Figure()
    figure.update_layout(template=template(), height=380, margin={"t": 60, "b": 50, "l": 10, "r": 14})
    figure.update_yaxes(title_text=f"held ({unit})", rangemode="tozero")
    if not trace.total_seconds:
        return Captioned(figure, "No update was made, so nothing is drawn.", [])
    end = end_of_steps(trace, start_seconds, STEPS) if end_seconds is None else end_seconds
    window = Window.of("memory", [trace], start_seconds, end)
    to_time, time_axis = window.scale, window.unit
    reach = [to_time * window.start_seconds, to_time * min(window.end_seconds, trace.total_seconds)]
    figure.update_xaxes(title_text=f"time ({time_axis})", range=reach)
    drawn = _drawn(most, window)
    for kind, look in LOOKS.items():
        if most.held[kind].any():
            figure.add_scatter(
                x=to_time * most.time_seconds[drawn], y=most.held[kind][drawn] / scale, name=kind, mode="lines",
                stackgroup="held", line={"color": look.colour, "width": 1},
                hovertemplate=f"worker {chosen}, {kind} at %{{x:.4g}} {time_axis}: %{{y:.4g}} {unit}<extra></extra>",
            )  # fmt: skip
    for rank, other in found.items():
        if rank != chosen:
            drawn = _drawn(other, window)
            figure.add_scatter(
                x=to_time * other.time_seconds[drawn], y=other.total[drawn] / scale, mode="lines",
                line={"color": INK, "width": 1, "dash": "dot"}, name="other workers, all kinds",
                legendgroup="others", showlegend=rank == min(set(found) - {chosen}),
                hovertemplate=f"worker {rank} at %{{x:.4g}} {time_axis}: %{{y:.4g}} {unit}<extra></extra>",
            )  # fmt: skip
    told = _sentence(trace, chosen, most, optimizer) + window.told([trace])
    return Captioned(figure, told, _table(most, scale, unit))


def _drawn(found: MemoryOverTime, window: Window) -> Integers:
    """The numbers of the moments that are drawn: all, or in each part of the time the one with most bytes."""
    first, after = np.searchsorted(found.time_seconds, [window.start_seconds, window.end_seconds], side="right")
    moments = np.arange(max(first - 1, 0), min(after + 1, len(found.time_seconds)))
    if len(moments) <= 2 * MOST_CELLS:
        return moments
    cells = np.array_split(moments, MOST_CELLS)
    return np.array([moments[0], *(cell[np.argmax(found.total[cell])] for cell in cells), moments[-1]])


def _sentence(trace: Trace, worker: int, found: MemoryOverTime, optimizer: str) -> str:
    place = int(np.argmax(found.total >= (1.0 - ROUNDING) * found.total.max()))  # the first, if steps are equal
    named = {"optimizer": f"optimizer ({optimizer})"}
    kinds = [
        f"{named.get(kind, kind)} {show(float(values[place]), 'byte')}"
        for kind, values in found.held.items()
        if values.any()
    ]
    said = (
        f"Worker {worker} holds at most {show(float(found.total[place]), 'byte')}, at "
        f"{show(float(found.time_seconds[place]), 'second')}: {', '.join(kinds)}."
    )
    if lacking := not_counted(trace.scenario.workload.profile):
        said += f" {lacking}"
    if trace.scenario.server_decides and OPTIMIZERS[optimizer]:
        said += " The servers hold the optimizer's numbers."
    return said


def _table(found: MemoryOverTime, scale: float, unit: str) -> list[Row]:
    together = {**found.held, "all kinds": found.total}
    length = float(found.time_seconds[-1]) or 1.0
    return [
        {
            "kind": kind,
            f"most ({unit})": float(values.max()) / scale,
            f"mean ({unit})": float(np.trapezoid(values, found.time_seconds)) / length / scale,
        }
        for kind, values in together.items()
    ]
