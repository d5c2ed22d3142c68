"""A sequence diagram in words and numbers: its sentence, and a row for each lifeline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distsim.figures.captioned import Row
from distsim.figures.sequence_links import Links, told
from distsim.figures.sequence_messages import MessageKind, Messages
from distsim.figures.wording import counted, enumerated
from distsim.metrics import covered_seconds
from distsim.trace import COMPUTE_KINDS, PAUSE_KINDS, SpanKind, Spans, Trace
from distsim.units import show


def table(trace: Trace, spans: Spans, found: dict[MessageKind, Messages], start: float, end: float) -> list[Row]:
    """A row for each lifeline: what it does within the window, and the bytes of its messages."""
    hosts = trace.workers + trace.servers
    sent, received = np.zeros(hosts), np.zeros(hosts)
    for own in found.values():
        np.add.at(sent, own.transfers.source, own.transfers.bytes)
        np.add.at(received, own.transfers.target, own.transfers.bytes)
    pauses = [kind for kind in PAUSE_KINDS if (spans.kind == kind).any()]
    kinds = {
        "computes": COMPUTE_KINDS, "waits": (SpanKind.WAIT,), "applies": (SpanKind.APPLY,),
        **{kind.words: (kind,) for kind in pauses},
    }  # fmt: skip
    milliseconds = {name: 1e3 * covered_seconds(spans, of, hosts, start, end) for name, of in kinds.items()}
    return [
        {
            "lifeline": trace.lane(rank),
            **{f"{name} (ms)": float(values[rank]) for name, values in milliseconds.items()},
            "sends (MB)": float(sent[rank]) / 1e6,
            "receives (MB)": float(received[rank]) / 1e6,
        }
        for rank in [*range(trace.workers, hosts), *range(trace.workers)]
    ]


def sentence(
    trace: Trace,
    found: dict[MessageKind, Messages],
    rows: Sequence[Row],
    start: float,
    end: float,
    use: Links,
    *,
    coloured: bool,
) -> str:
    """What the diagram shows. coloured: whether arrows have the colours of versions."""
    parts = []
    for kind, own in found.items():
        sizes = np.unique(np.round(own.transfers.bytes, 3))
        each = f" of {show(float(sizes[0]), 'byte')}" if len(sizes) == 1 else ""
        parts.append(f"{counted(len(own), kind)}{each}")
    times = trace.updates.time_seconds
    made = trace.updates.version[(times >= start) & (times <= end)]
    parts.append(counted(len(np.unique(made)), "update"))  # each of several servers makes a part of one
    text = enumerated(parts)
    waits = _mean_seconds(trace, rows, "waits")
    share = 100.0 * waits / (end - start)
    took = {kind.words: _mean_seconds(trace, rows, kind.words) for kind in PAUSE_KINDS}
    paused = ", ".join(f"{words} {show(seconds, 'second')}" for words, seconds in took.items() if seconds)
    policy = trace.scenario.policy.kind.replace("_", " ") if "scenario" in trace.metadata else trace.producer
    name = f"{policy}, {counted(trace.workers, 'worker')}".capitalize()
    stale = _staleness(trace, start, end)
    age = "" if not stale else f" The stalest gradient applied is {counted(stale, 'update')} old."
    colours = " An arrow has the colour of its version." if use and coloured else ""
    return (
        f"{name}, {show(start, 'second')} to {show(end, 'second')}: {text}; "
        f"a worker waits {show(waits, 'second')} on average, {share:.0f} % of the time"
        f"{f'; {paused}' if paused else ''}.{age}{told(use, end - start)}{colours}"
    )


def _mean_seconds(trace: Trace, rows: Sequence[Row], column: str) -> float:
    """The mean of a column over the workers, in seconds; 0 if the table has no such column."""
    return float(np.mean([float(row.get(f"{column} (ms)") or 0.0) for row in rows[trace.servers :]])) / 1e3


def _staleness(trace: Trace, start: float, end: float) -> int | None:
    """The largest staleness among the updates of the window."""
    times = {
        (version, server): seconds
        for version, server, seconds in zip(
            *(column.tolist() for column in trace.updates.columns().values()), strict=True
        )
    }
    applied = trace.contributions.where(trace.contributions.applied)
    made = np.array(
        [times.get(key, np.nan) for key in zip(applied.version.tolist(), applied.server.tolist(), strict=True)]
    )
    shown = trace.contributions.staleness[(made >= start) & (made <= end)] if len(applied) else np.empty(0, dtype=int)
    return int(shown.max()) if len(shown) else None
