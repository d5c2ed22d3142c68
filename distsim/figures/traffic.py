"""Where the bytes go: from whom to whom, over which NICs, and what the busiest link carries as workers are added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from distsim.cluster import Link
from distsim.errors import InputError
from distsim.figures.captioned import Captioned, Row
from distsim.figures.names import link_name, nic_name
from distsim.figures.theme import INK, MEASURED, PAPER, PREDICTED, SMALL, Look, marker, template
from distsim.link_traffic import bytes_by_link, ended, links, why_none
from distsim.metrics import summary
from distsim.policies import Backup, Ddp, LocalSgd, Policy, Synchronous
from distsim.theory.arguments import is_count
from distsim.theory.collectives import all_reduce_bytes_per_worker, server_link_bytes
from distsim.trace import Trace
from distsim.units import show

UP = Look("up-link", PREDICTED.colour, "")
DOWN = Look("down-link", MEASURED.colour, "/")
SCALE = [[0.0, PAPER], [1e-9, "#e3f0f8"], [1.0, PREDICTED.colour]]
MOST_WITH_NUMBERS = 12  # ranks
LANES_NAMED = 20
MEGA = 1e6

# Of an all-reduce through each: the bytes of the busiest link direction, and how it is drawn.
ALGORITHMS = {
    "ring": (all_reduce_bytes_per_worker, PREDICTED.colour, "solid", "circle"),
    "parameter_server": (server_link_bytes, "#d55e00", "dash", "square"),
}


def traffic(trace: Trace) -> Captioned:
    """Bytes from each rank to each other, and beside them the bytes on every NIC's up-link and down-link.

    Transfers that had ended by the last update count, as in `distsim.metrics`. A NIC stands in the row of the first
    rank that uses it: a colocated server uses its worker's, and the workers of a node may share one.

    >>> import distsim
    >>> traffic(distsim.simulate(distsim.example("synchronous_ring"))).summary
    '1.26 GB in 1200 transfers; the busiest link, the up-link of worker 0, carries 315 MB, as much as the mean.'
    """
    ranks = trace.workers + trace.servers
    between = np.zeros((ranks, ranks))
    in_time = ended(trace)
    np.add.at(between, (in_time.source, in_time.target), in_time.bytes)
    by_link = bytes_by_link(trace, in_time)
    nics = sorted(host for way, host in links(trace) if way == "up")
    up, down = (np.array([by_link.get((way, nic), 0.0) for nic in nics]) for way in ("up", "down"))
    figure = make_subplots(cols=2, shared_yaxes=True, column_widths=[0.62, 0.38], horizontal_spacing=0.03)
    rank_numbers, few = np.arange(ranks), ranks <= MOST_WITH_NUMBERS
    gap = 1 if ranks <= LANES_NAMED else 0
    figure.add_trace(
        go.Heatmap(
            z=np.where(between > 0.0, between / MEGA, np.nan), x=rank_numbers, y=rank_numbers, colorscale=SCALE,
            zmin=0.0, zmax=max(float(between.max()), 1.0) / MEGA, showscale=False, xgap=gap, ygap=gap,
            texttemplate="%{z:.4~g}" if few else None, name="between ranks",
            hovertemplate="from rank %{y} to rank %{x}: %{z:.4g} MB<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip
    owners = [nic_name(trace, nic) for nic in nics]
    for look, of_nics in ((UP, up), (DOWN, down)):
        figure.add_trace(
            go.Bar(
                orientation="h", y=nics, x=of_nics / MEGA, marker=_bar(look, ranks), name=look.name, hovertext=owners,
                hovertemplate=f"{look.name} of %{{hovertext}}: %{{x:.4g}} MB<extra></extra>",
            ),
            row=1, col=2,
        )  # fmt: skip
    _lay_out(figure, trace)
    table: list[Row] = [
        {"NIC of": owner, "up-link (MB)": sent / MEGA, "down-link (MB)": received / MEGA}
        for owner, sent, received in zip(owners, up.tolist(), down.tolist(), strict=True)
    ]
    carried = {(way, nic): by_link.get((way, nic), 0.0) for way in ("up", "down") for nic in nics}
    return Captioned(figure, _sentence(trace, carried, float(between.sum()), len(in_time)), table)


def _bar(look: Look, ranks: int) -> dict[str, object]:
    return marker(look) | ({"line": {"width": 0}} if ranks > 2 * LANES_NAMED else {})


def _lay_out(figure: go.Figure, trace: Trace) -> None:
    ranks = trace.workers + trace.servers
    if ranks <= LANES_NAMED:
        ticks = {"tickvals": list(range(ranks)), "ticktext": [trace.lane(rank) for rank in range(ranks)]}
    else:
        ticks = {"dtick": 32 if ranks > 96 else 8}
    figure.update_yaxes(range=[ranks - 0.5, -0.5], showgrid=False, **ticks)
    figure.update_yaxes(title_text="from rank", row=1, col=1)
    figure.update_xaxes(title_text="to rank", range=[-0.5, ranks - 0.5], showgrid=False, row=1, col=1)
    figure.update_xaxes(dtick=1 if ranks <= LANES_NAMED else ticks["dtick"], row=1, col=1)
    figure.update_xaxes(title_text="bytes of the link (MB)", rangemode="tozero", row=1, col=2)
    figure.add_annotation(
        text="MB from rank to rank", x=0.0, y=1.0, xref="x domain", yref="y domain", xanchor="left", yanchor="bottom",
        showarrow=False, font_size=SMALL + 1,
    )  # fmt: skip
    figure.update_layout(
        template=template(), height=float(np.clip(34 * ranks + 130, 300, 640)), bargap=0.25,
        legend={"x": 0.64}, margin={"t": 46, "b": 54, "l": 10, "r": 14},
    )  # fmt: skip


def _sentence(trace: Trace, carried: dict[Link, float], total: float, transfers: int) -> str:
    if not transfers:
        return nothing_drawn(trace)
    sent = f"{show(total, 'byte')} in {transfers} transfer{'s' if transfers != 1 else ''}"
    over_nics = sum(carried.values()) / 2
    if not over_nics:
        return f"{sent}, all of them inside nodes: no NIC carries anything."
    if not np.isclose(total, over_nics):
        sent += f", {show(total - over_nics, 'byte')} of them inside nodes"
    link, most = max(carried.items(), key=lambda item: item[1])
    mean = 2 * over_nics / len(carried)
    times = "as much as" if np.isclose(most, mean) else f"{most / mean:.3g} times"
    return f"{sent}; the busiest link, the {link_name(trace, link)}, carries {show(most, 'byte')}, {times} the mean."


def nothing_drawn(trace: Trace) -> str:
    """What is told of a run without transfers."""
    reason = why_none(trace)
    return f"{reason[0].upper()}{reason[1:]}, so no bytes are drawn."


def ring_against_server(num_bytes: float, workers: Sequence[int], traces: Sequence[Trace] = ()) -> Captioned:
    """What the busiest link carries per update as workers are added: around a ring, and through one server.

    num_bytes: of one gradient. workers: the numbers of workers for which the formulas are drawn. traces: runs of such
    gradients around a ring or through a server, drawn as marks.

    Raises InputError where a trace went another way, had gradients of another size, shared NICs (colocation, nodes), or
    its updates do not take every worker's whole gradient, as with asynchronous training or a pipeline.

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
        figure.add_trace(
            go.Scatter(
                x=counts, y=[value or None for value in megabytes], mode="lines",  # one worker's ring sends nothing
                name=f"{_called(kind)}, formula", line={"color": colour, "dash": dash, "width": 2},
                hovertemplate="%{x} workers: %{y:.4g} MB<extra></extra>",
            )
        )  # fmt: skip
    runs = [_run(trace, num_bytes) for trace in traces]
    for kind in dict.fromkeys(kind for kind, *_ in runs):
        _, colour, _, symbol = ALGORITHMS[kind]
        own = [(count, value / MEGA) for found, count, value in runs if found == kind]
        figure.add_trace(
            go.Scatter(
                x=[count for count, _ in own], y=[value or None for _, value in own], mode="markers",
                name=f"{_called(kind)}, run", marker={
                    "color": colour, "symbol": symbol, "size": 10, "line": {"color": INK, "width": 1},
                },
                hovertemplate="%{x} workers: %{y:.4g} MB<extra></extra>",
            )
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
    figure.update_yaxes(type="log", title_text="bytes of the busiest link, per update (MB)", dtick=1)
    return Captioned(figure, _growth(num_bytes, counts[-1], runs), table)


def _called(kind: str) -> str:
    return "ring" if kind == "ring" else "one server"


def _run(trace: Trace, num_bytes: float) -> tuple[str, int, float]:
    """The way a run's gradients went, its workers, and the bytes of its busiest link per update."""
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
    """Whether each worker sends one for each update, as the formulas have it."""
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
        f"; of {len(missed)} run{'s' if len(missed) != 1 else ''}, "
        f"the largest difference from the formula is {100 * round(max(missed), 6):.2g} %"
        if missed
        else ""
    )
    return (
        f"With {workers} worker{'s' if workers != 1 else ''} the busiest link carries "
        f"{show(server, 'byte')} per update with one server and {show(ring, 'byte')} around a ring{less}{seen}."
    )
