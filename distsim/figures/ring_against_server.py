"""Bytes on the busiest link against the number of workers: around a ring, and through one parameter server."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from distsim.errors import InputError
from distsim.figures.captioned import Captioned
from distsim.figures.theme import INK, RUNS, template
from distsim.figures.wording import counted
from distsim.metrics import summary
from distsim.policies import Backup, Ddp, LocalSgd, Policy, Synchronous
from distsim.theory.arguments import is_count
from distsim.theory.collectives import all_reduce_bytes_per_worker, server_link_bytes
from distsim.trace import Trace
from distsim.units import show

MEGA = 1e6
# For each algorithm: the bytes of an all-reduce on the busiest link direction, then colour, dash and mark.
ALGORITHMS = {
    "ring": (all_reduce_bytes_per_worker, RUNS[0].colour, "solid", "circle"),
    "parameter_server": (server_link_bytes, RUNS[1].colour, "dash", "square"),
}


def ring_against_server(num_bytes: float, workers: Sequence[int], traces: Sequence[Trace] = ()) -> Captioned:
    """Draws the bytes per update on the busiest link by number of workers: around a ring, and through one server.

    num_bytes: of one gradient. workers: the numbers of workers for which the formulas are drawn. traces: runs with
    gradients of this size around a ring or through one server, drawn as marks.

    Raises InputError where a trace has other communication, gradients of another size, shared NICs (colocation, nodes),
    or updates without every worker's whole gradient, as with asynchronous training or a pipeline.

    >>> import distsim
    >>> run = distsim.simulate(distsim.example("synchronous_ring"))
    >>> ring_against_server(4 * 2**20, [2, 4, 8, 16], [run]).summary
    'With 16 workers the busiest link carries 67.1 MB per update with one server and 7.86 MB around a ring, 8.53 \
times less; of 1 run, the largest difference from the formula is 0 %.'
    """
    if not len(workers) or not all(is_count(count) for count in workers):
        raise InputError.of("ring_against_server(workers)", workers, "must be counts of at least 1", "take [2, 4, 8]")
    counts = sorted({int(count) for count in workers})
    figure, table = go.Figure(), []
    for kind, (formula, colour, dash, _) in ALGORITHMS.items():
        megabytes = [formula(num_bytes, count) / MEGA for count in counts]
        figure.add_scatter(
            x=counts, y=[value or None for value in megabytes], mode="lines",  # a ring of one worker sends nothing
            name=f"{_called(kind)}, formula", line={"color": colour, "dash": dash, "width": 2},
            hovertemplate="%{x} workers: %{y:.4g} MB<extra></extra>",
        )  # fmt: skip
    runs = [_run(trace, num_bytes) for trace in traces]
    for kind in dict.fromkeys(kind for kind, *_ in runs):
        _, colour, _, symbol = ALGORITHMS[kind]
        own = [(count, value / MEGA) for found, count, value in runs if found == kind]
        figure.add_scatter(
            x=[count for count, _ in own], y=[value or None for _, value in own], mode="markers",
            name=f"{_called(kind)}, run", marker={
                "color": colour, "symbol": symbol, "size": 10, "line": {"color": INK, "width": 1},
            },
            hovertemplate="%{x} workers: %{y:.4g} MB<extra></extra>",
        )  # fmt: skip
    for count in sorted({*counts, *(count for _, count, _ in runs)}):
        row: dict[str, str | float | int | None] = {"workers": count}
        for kind, (formula, *_) in ALGORITHMS.items():
            found = [value for other, at, value in runs if (other, at) == (kind, count)]
            row[f"{_called(kind)}, formula (MB)"] = formula(num_bytes, count) / MEGA
            row[f"{_called(kind)}, run (MB)"] = found[0] / MEGA if found else None
        table.append(row)
    figure.update_layout(template=template(), height=400, margin={"t": 60, "b": 50, "l": 10, "r": 14})
    powers = [2**power for power in range(20)]
    figure.update_xaxes(type="log", title_text="workers", tickvals=powers)
    labels = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]
    figure.update_yaxes(
        type="log", title_text="bytes of the busiest link, per update (MB)", tickvals=labels,
        ticktext=[f"{label:g}" for label in labels],
    )  # fmt: skip
    return Captioned(figure, _growth(num_bytes, counts[-1], runs), table)


def _called(kind: str) -> str:
    return "ring" if kind == "ring" else "one server"


def _run(trace: Trace, num_bytes: float) -> tuple[str, int, float]:
    """A run's kind of communication, its number of workers, and the bytes per update on its busiest link."""
    scenario = trace.scenario
    kind, policy = scenario.communication.kind, scenario.policy
    if kind not in ALGORITHMS or trace.servers > 1:
        what = f"{kind}, {trace.servers} servers"
        raise InputError.of("ring_against_server(traces)", what, "must be a ring or one server", "leave it out")
    if scenario.communication.colocated or scenario.cluster.nodes:
        what = "a colocated server" if scenario.communication.colocated else "workers in nodes"
        raise InputError.of("ring_against_server(traces)", what, "must give each rank a NIC of its own", "leave it out")
    if not _sends_whole_gradients(policy):
        rule = "must send every worker's whole gradient for each update"
        raise InputError.of("ring_against_server(traces): policy", policy, rule, "leave it out")
    if not np.isclose(trace.scenario.gradient_bytes, num_bytes):
        found = trace.scenario.gradient_bytes
        raise InputError.of("gradient", found, f"must be of {num_bytes:g} bytes, as all in the figure", "take such")
    numbers = summary(trace)
    return kind, trace.workers, (numbers.bytes_per_link_max or 0.0) / max(numbers.updates, 1)


def _sends_whole_gradients(policy: Policy) -> bool:
    """Whether each worker sends a whole gradient for each update, as the formulas assume."""
    match policy:
        case Backup():
            return not policy.cancel
        case Ddp():
            return policy.compression == 1.0
        case _:
            return isinstance(policy, Synchronous | LocalSgd)


def _growth(num_bytes: float, workers: int, runs: Sequence[tuple[str, int, float]]) -> str:
    ring, server = (formula(num_bytes, workers) for formula, *_ in ALGORITHMS.values())
    less = f", {server / ring:.3g} times less" if ring else ""
    missed = [
        abs(value / formula - 1.0)
        for kind, count, value in runs
        if (formula := ALGORITHMS[kind][0](num_bytes, count)) and value
    ]
    seen = (
        f"; of {counted(len(missed), 'run')}, "
        f"the largest difference from the formula is {100 * round(max(missed), 6):.2g} %"
        if missed
        else ""
    )
    return (
        f"With {counted(workers, 'worker')} the busiest link carries "
        f"{show(server, 'byte')} per update with one server and {show(ring, 'byte')} around a ring{less}{seen}."
    )
