"""A trace as Chrome trace-event JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open unchanged.

Format: "Trace Event Format" by the Chromium authors. Viewers read microseconds from `ts` and `dur`. `loads` reads
`args`, which holds the exact value of every column. Spans are complete events ("X") on a thread per worker and server.
Spans that overlap (a server sends while it receives) are on further threads of the same name. Transfers may overlap
on a link, so they are pairs of asynchronous events ("b", "e"). Updates and contributions are instants ("i").
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from distsim.trace.derived import CollectiveTransfers, latest
from distsim.trace.tables import SpanKind, Spans, Table
from distsim.trace.trace import TABLES, Trace
from distsim.trace.values import table_of
from distsim.trace_size import check_events

SUGGESTED = 0.1  # of the rows that fit: a file that takes about a minute to write

RANKS, NETWORK, LEARNING = 1, 2, 3  # "processes", the viewer's groups of tracks


def dumps(trace: Trace) -> str:
    """The JSON text of `trace`, one event per line. Raises InputError where it does not fit this machine's memory."""
    start_seconds = (trace.part_seconds or (0.0,))[0]
    check_events(
        sum(len(getattr(trace, name)) for name in TABLES), start_seconds, partial(_end_of, trace, start_seconds)
    )
    events = [*_names(trace), *_spans(trace), *_updates(trace), *_contributions(trace), *_transfers(trace)]
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    other = json.dumps({"distsim": trace.metadata})
    return f'{{"displayTimeUnit":"ms","otherData":{other},"traceEvents":[\n{lines}\n]}}\n'


def _end_of(trace: Trace, start_seconds: float, rows: int) -> float:
    """The end of a part of the run from `start_seconds` on that has about so many rows."""
    spans, updates, derivation = trace.spans, trace.updates, trace.transfers.derivation
    begun = np.sort(spans.start_seconds[spans.end_seconds > start_seconds])
    made = np.sort(updates.time_seconds[updates.time_seconds >= start_seconds])
    rows_of_update = 1.0 + len(trace.contributions) / max(len(updates), 1)
    carried: Callable[[float], float] = lambda _: 0.0  # noqa: E731
    if isinstance(derivation, CollectiveTransfers):
        carried = derivation.begun_since(start_seconds)
    else:
        moved = trace.transfers
        begun = np.sort(np.concatenate([begun, moved.start_seconds[moved.end_seconds > start_seconds]]))

    def count(seconds: float) -> float:
        return float(
            np.searchsorted(begun, seconds) + np.searchsorted(made, seconds) * rows_of_update + carried(seconds)
        )

    last = float(spans.end_seconds.max(initial=start_seconds))
    ends = [latest(count, start_seconds, last, share * rows) for share in (SUGGESTED, 1.0)]
    return ends[0] if ends[0] > start_seconds else ends[1]


def loads(text: str) -> Trace:
    """The trace of a text that `dumps` wrote, bit for bit. Raises ValueError for any other text."""
    document = json.loads(text)
    try:
        events, metadata = document["traceEvents"], document["otherData"]["distsim"]
    except (KeyError, TypeError):
        raise ValueError("it holds no traceEvents, or no otherData of distsim") from None
    rows: dict[str, list[Any]] = {name: [] for name in TABLES}
    for number, event in enumerate(events):
        try:
            if event["ph"] in ("X", "i", "b"):
                rows[event["cat"]].append(event["args"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"event {number} is none of distsim's: {error}") from None
    tables: dict[str, Any] = {
        name: table_of(name, {key: _column(rows[name], name, key) for key in table.dtypes})
        for name, table in TABLES.items()
    }
    return Trace(metadata=metadata, **tables)


def _column(rows: list[Any], name: str, key: str) -> list[Any]:
    try:
        return [row[key] for row in rows]
    except (KeyError, TypeError):
        raise ValueError(f"one of the {name} has no {key}") from None


def _rows(table: Table) -> list[dict[str, Any]]:
    columns = {name: column.tolist() for name, column in table.columns().items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _names(trace: Trace) -> list[dict[str, Any]]:
    groups = {RANKS: f"{trace.producer} run", NETWORK: "network", LEARNING: "parameters"}
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": text}}
        for pid, text in groups.items()
    ]
    depths = dict.fromkeys(range(trace.workers + trace.servers), 1)
    for rank, depth in zip(trace.spans.worker.tolist(), _depths(trace.spans), strict=True):
        depths[rank] = max(depths[rank], depth + 1)
    for rank, count in depths.items():
        for depth in range(count):
            common = {"ph": "M", "pid": RANKS, "tid": _thread(rank, depth)}
            names.append(common | {"name": "thread_name", "args": {"name": trace.lane(rank)}})
            names.append(common | {"name": "thread_sort_index", "args": {"sort_index": _thread(rank, depth)}})
    return names


def _thread(rank: int, depth: int) -> int:
    return 1000 * (rank + 1) + depth


def _depths(spans: Spans) -> list[int]:
    """For each span, the first thread of its lane that is free when the span starts."""
    depths = [0] * len(spans)
    free_at: dict[int, list[float]] = {}
    for row in np.lexsort((spans.end_seconds, spans.start_seconds)).tolist():
        lane = free_at.setdefault(int(spans.worker[row]), [])
        start = spans.start_seconds[row]
        depth = next((depth for depth, free in enumerate(lane) if free <= start), len(lane))
        lane[depth : depth + 1] = [spans.end_seconds[row]]
        depths[row] = depth
    return depths


def _spans(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "ph": "X",
            "cat": "spans",
            "name": SpanKind(row["kind"]).text,
            "pid": RANKS,
            "tid": _thread(row["worker"], depth),
            "ts": row["start_seconds"] * 1e6,
            "dur": (row["end_seconds"] - row["start_seconds"]) * 1e6,
            "args": row,
        }
        for row, depth in zip(_rows(trace.spans), _depths(trace.spans), strict=True)
    ]


def _updates(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "ph": "i",
            "cat": "updates",
            "name": f"version {row['version']}",
            "pid": LEARNING,
            "tid": max(row["server"], 0),
            "s": "g",
            "ts": row["time_seconds"] * 1e6,
            "args": row,
        }
        for row in _rows(trace.updates)
    ]


def _contributions(trace: Trace) -> list[dict[str, Any]]:
    """The events of gradients. The table has no times: an applied gradient gets its update's time, another gets 0."""
    times = dict(zip(trace.updates.version.tolist(), trace.updates.time_seconds.tolist(), strict=True))
    return [
        {
            "ph": "i",
            "cat": "contributions",
            "name": f"gradient of worker {row['worker']}, step {row['step']}",
            "pid": LEARNING,
            "tid": max(row["server"], 0),
            "s": "t",
            "ts": times.get(row["version"], 0.0) * 1e6,
            "args": row,
        }
        for row in _rows(trace.contributions)
    ]


def _transfers(trace: Trace) -> list[dict[str, Any]]:
    events = []
    for number, row in enumerate(_rows(trace.transfers)):
        common = {
            "cat": "transfers",
            "name": f"{trace.lane(row['source'])} to {trace.lane(row['target'])}",
            "id": number,
            "pid": NETWORK,
            "tid": _thread(row["source"], 0),
        }
        events.append(common | {"ph": "b", "ts": row["start_seconds"] * 1e6, "args": row})
        events.append(common | {"ph": "e", "ts": row["end_seconds"] * 1e6})
    return events
