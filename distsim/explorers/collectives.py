"""Collectives at work: the transfers of each round, the number of rounds, and the time they take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import plotly.graph_objects as go

from distsim.cluster import Cluster
from distsim.collective_costs import collective_seconds
from distsim.collectives import COLLECTIVES, Topology
from distsim.engine import collective as simulated
from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Pick, Slider
from distsim.explorers.explorer import Explorer
from distsim.figures.captioned import Captioned, Row
from distsim.figures.collective import collective
from distsim.scenario import Scenario
from distsim.units import show

STEPS = 20
MOST_RANKS = 16
ROUNDS, SENT, TIME, FORMULA = "rounds", "most that a rank sends (MB)", "simulated (ms)", "formula (ms)"
KINDS = {kind: row for kind, row in COLLECTIVES.items() if not row.needs_nodes}


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    kind: a key of `KINDS`. workers: without the server. after: how many rounds the picture shows as done.
    gradient_mib: of each worker, in MiB. gbit_per_second: bandwidth of every NIC, each direction. latency_us: of each
    message, in microseconds.
    """

    kind: str = "ring"
    workers: int = 4
    after: int = 0
    gradient_mib: float = 16.0
    gbit_per_second: float = 10.0
    latency_us: float = 50.0


def scenarios(parameters: Parameters) -> tuple[Scenario, ...]:
    """Synchronous training by this collective; empty where the collective is not an all-reduce.

    >>> [scenario.communication.kind for scenario in scenarios(Parameters(kind="tree"))]
    ['tree']
    >>> scenarios(Parameters(kind="broadcast"))
    ()
    """
    row = KINDS[parameters.kind]
    if not row.all_reduce:
        return ()
    communication = {"kind": row.kind}
    if not row.has_servers:
        communication["implementation"] = "schedule"
    table = {
        "name": f"{row.kind.replace('_', '-')}-of-{parameters.workers}",
        "steps": STEPS,
        "cluster": _links(parameters),
        "compute": {"mean": "20 ms"},
        "workload": {"gradient": f"{parameters.gradient_mib:g} MiB"},
        "policy": {"kind": "synchronous"},
        "communication": communication,
    }
    return (Scenario.of(table),)


def explore(parameters: Parameters) -> Captioned:
    """The picture of the collective after `after` rounds, from which play and slide go on, and a table of its costs.

    If `after` exceeds the number of rounds, the picture shows the last round.

    >>> found = explore(Parameters(kind="ring", workers=4))
    >>> found.table[0]["rounds"], round(found.table[0]["simulated (ms)"], 3)
    (6, 20.433)
    """
    drawn = _drawn(parameters.kind, parameters.workers)
    row, topology = KINDS[parameters.kind], Topology(parameters.workers)
    schedule = row.schedule(topology)
    num_bytes, cluster = parameters.gradient_mib * 2**20, Cluster(**_links(parameters))  # type: ignore[arg-type]
    whole = row.whole_bytes(num_bytes, parameters.workers)
    ends = simulated.run(schedule, cluster, whole).ends_seconds
    formula = collective_seconds(row, num_bytes, cluster, topology)
    sent = whole * float(schedule.sent_chunks.max()) / schedule.chunks
    shown: Row = {
        "collective": parameters.kind.replace("_", " "),
        ROUNDS: len(schedule.rounds),
        SENT: sent / 1e6,
        TIME: 1e3 * max(ends),
        FORMULA: 1e3 * formula,
    }
    figure = _at_round(drawn, parameters.after)
    took = f"On these links it takes {show(max(ends), 'second')}; the formula says {show(formula, 'second')}."
    return Captioned(figure, f"{drawn.summary} {took}", [shown])


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["kind"].value = "tree"
    >>> view.shown.table[0]["collective"]
    'tree'
    """
    return Explorer(
        title=EXPLORERS["collectives"].title,
        question="Each square is a chunk. Its number says how many workers' parts the chunk sums.",
        start=Parameters(),
        controls=[
            Pick("kind", "collective", tuple(KINDS)),
            Slider("workers", "workers", "", 1, MOST_RANKS),
            Slider("after", "rounds done", "", 0, 2 * (MOST_RANKS - 1)),
        ],
        more=[
            Choice("gradient_mib", "gradient", "MiB", (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0)),
            Choice("gbit_per_second", "bandwidth", "Gbit/s", (0.2, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)),
            Choice("latency_us", "latency", "us", (1.0, 10.0, 50.0, 200.0, 1000.0)),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(ROUNDS, SENT, TIME),
    )


def _links(parameters: Parameters) -> dict[str, object]:
    return scenario_tables.cluster(parameters.workers, parameters.gbit_per_second, parameters.latency_us)


@lru_cache(maxsize=4)
def _drawn(kind: str, workers: int) -> Captioned:
    """Cached: moves of other controls do not draw the picture again."""
    return collective(KINDS[kind].schedule(Topology(workers)))


def _at_round(drawn: Captioned, after: int) -> go.Figure:
    """The picture after `after` rounds. The first frame is the start, before any round.

    A frame holds the changes of a picture alone, so they are laid over the whole first picture.
    """
    shown = min(after, len(drawn.figure.frames) - 1)
    frame = drawn.figure.frames[shown]
    traces = [trace.to_plotly_json() for trace in drawn.figure.data]
    for place, changes in zip(frame.traces, frame.data, strict=True):
        traces[place] |= changes.to_plotly_json()
    figure = go.Figure(data=traces, frames=drawn.figure.frames, layout=drawn.figure.layout)
    figure.layout.sliders[0].active = shown
    return figure
