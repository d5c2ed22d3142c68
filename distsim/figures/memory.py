"""The bytes that the workers of a run hold over time: of one worker by kind, and of the others in all."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from distsim.arrays import Integers
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.theme import INK, RUNS, template
from distsim.figures.wording import time_unit
from distsim.memory import OPTIMIZERS
from distsim.memory_over_time import KINDS, MemoryOverTime, held_over_time
from distsim.trace import Trace
from distsim.units import show

MOST_RANKS = 16  # of more, one worker is drawn alone; but for the stages of a pipeline, all hold alike
MOST_CELLS = 1000  # parts of the time; of a run with more moments, the one with most is drawn for each part
LOOKS = dict(zip(KINDS, RUNS, strict=False))
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def memory(trace: Trace, optimizer: str = "sgd", worker: int | None = None) -> Captioned:
    """Draws the bytes of tensors that a worker holds, by kind, until the last update; of up to 16 workers, all totals.

    The bytes are counted from the scenario, and the moments are those of the trace. Activations are known where a
    profile tells them.

    optimizer: whose numbers are held beside parameters and gradients, see `distsim.memory`. worker: None takes the one
    that holds most. Raises InputError where the run has no such worker, the trace is a part of a run, and for another
    optimizer.

    >>> import distsim
    >>> memory(distsim.simulate(distsim.example("synchronous_ring")), optimizer="adam").summary
    'Worker 0 holds at most 16.8 MB, at 0 s: parameters 4.19 MB, gradients 4.19 MB, optimizer \
8.39 MB. Activations are not counted, since the workload has no profile.'
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
    scale, unit = next((one for one in UNITS if most.total.max() >= one[0]), (1.0, "B"))
    to_time, time_axis = time_unit(trace.total_seconds)
    figure = go.Figure()
    figure.update_layout(template=template(), height=380, margin={"t": 60, "b": 50, "l": 10, "r": 14})
    figure.update_xaxes(title_text=f"time ({time_axis})", range=[0.0, to_time * trace.total_seconds or 1.0])
    figure.update_yaxes(title_text=f"held ({unit})", rangemode="tozero")
    if not trace.total_seconds:
        return Captioned(figure, "No update was made, so nothing is drawn.", [])
    drawn = _drawn(most)
    for kind, look in LOOKS.items():
        if most.held[kind].any():
            figure.add_scatter(
                x=to_time * most.time_seconds[drawn], y=most.held[kind][drawn] / scale, name=kind, mode="lines",
                stackgroup="held", line={"color": look.colour, "width": 1},
                hovertemplate=f"worker {chosen}, {kind} at %{{x:.4g}} {time_axis}: %{{y:.4g}} {unit}<extra></extra>",
            )  # fmt: skip
    for rank, other in found.items():
        if rank != chosen:
            drawn = _drawn(other)
            figure.add_scatter(
                x=to_time * other.time_seconds[drawn], y=other.total[drawn] / scale, mode="lines",
                line={"color": INK, "width": 1, "dash": "dot"}, name="other workers, all kinds",
                legendgroup="others", showlegend=rank == min(set(found) - {chosen}),
                hovertemplate=f"worker {rank} at %{{x:.4g}} {time_axis}: %{{y:.4g}} {unit}<extra></extra>",
            )  # fmt: skip
    return Captioned(figure, _sentence(trace, chosen, most, optimizer), _table(most, scale, unit))


def _drawn(found: MemoryOverTime) -> Integers:
    """The numbers of the moments that are drawn: all, or in each part of the time the one with most bytes."""
    moments = np.arange(len(found.time_seconds))
    if len(moments) <= 2 * MOST_CELLS:
        return moments
    cells = np.array_split(moments, MOST_CELLS)
    return np.array([0, *(cell[np.argmax(found.total[cell])] for cell in cells), moments[-1]])


def _sentence(trace: Trace, worker: int, found: MemoryOverTime, optimizer: str) -> str:
    place = int(np.argmax(found.total))
    kinds = [f"{kind} {show(float(found.held[kind][place]), 'byte')}" for kind in KINDS if found.held[kind].any()]
    said = (
        f"Worker {worker} holds at most {show(float(found.total[place]), 'byte')}, at "
        f"{show(float(found.time_seconds[place]), 'second')}: {', '.join(kinds)}."
    )
    if trace.scenario.workload.profile is None:
        said += " Activations are not counted, since the workload has no profile."
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
