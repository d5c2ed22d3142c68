"""Merges the records of all starts of a run with failures: the rows that were not lost, and the pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from distsim.arrays import Floats
from distsim.runtime.recording.recorder import NUMBERS, TABLES, Record, Row, load, recorded, starts
from distsim.trace import SpanKind, Spans, Trace


class Resumed(NamedTuple):
    """The ranks went on after so many updates and steps of a worker.

    failed, ready, start: when a rank failed, when all ranks were ready again, and when they went on, in seconds of the
    monotonic clock.
    """

    update: int
    step: int
    failed: float
    ready: float
    start: float


# Whether a row is from before the checkpoint of the next start. Answers are sent again after the checkpoint.
BEFORE: dict[str, Callable[[Row, Resumed], bool]] = {
    **{name: lambda row, cut: row[0] < cut.step for name in ("computes", "forwards", "backwards", "losses")},
    **{name: lambda row, cut: row[0] < cut.update for name in ("all_reduces", "exchange_work", "sends", "receives")},
    **{name: lambda row, cut: row[1] < cut.step for name in ("pushes", "arrivals", "dropped")},
    **{name: lambda row, cut: row[1] < cut.update for name in ("pulls", "answers")},
    **{name: lambda row, cut: row[0] <= cut.update for name in ("updates", "applied", "checkpoints")},
}


Span = tuple[Any, ...]  # a row of the trace's spans
Tables = dict[str, list[Row]]
Pause = tuple[SpanKind, float, float]  # its start and end


def joined(folder: Path, number: int, ranks: int) -> list[Tables]:
    """The rows of each rank by table over all starts, without those that a failure undid."""
    found = {
        start: [recorded(folder, number, rank, start) for rank in range(ranks)] for start in starts(folder, number)
    }
    resumes = {
        start: Resumed(int(row[0]), int(row[1]), *row[2:])
        for start, records in found.items()
        for row in [row for tables in records for row in tables["resumed"]][:1]
    }
    whole: list[Tables] = [{name: [] for name in NUMBERS} for _ in range(ranks)]
    for start, records in found.items():
        cut = min((resume for later, resume in resumes.items() if later > start), default=None)
        for own, tables in zip(whole, records, strict=True):
            for name, rows in tables.items():
                own[name] += [row for row in rows if cut is None or name not in BEFORE or BEFORE[name](row, cut)]
    return whole


def load_joined(folder: Path, number: int, ranks: int) -> list[Record]:
    """The records of all ranks, with the facts of the last start."""
    return [
        Record({name: _array(name, rows) for name, rows in own.items()}, load(folder, number, rank).facts)
        for rank, own in enumerate(joined(folder, number, ranks))
    ]


def _array(name: str, rows: list[Row]) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(TABLES[name]))


def with_pauses(trace: Trace, records: Sequence[Record], zero: float) -> Trace:
    """The trace with the spans CHECKPOINT, LOST (work that a failure undid) and RESTART on every worker.

    zero: when the trace's clock starts. A wait is cut where a pause interrupts it. The metadata say under
    "restarts_took_seconds" how long each restart took. Where a restart took longer than the scenario's restart_cost, so
    does its span.
    """
    workers, servers = records[: trace.workers], records[trace.workers :]
    at_server = [row for record in servers for row in record.rows("checkpoints")]
    resumes = [Resumed(int(row[0]), int(row[1]), *row[2:]) for row in records[0].rows("resumed")]
    pauses = [_pauses(at_server or record.rows("checkpoints"), resumes, zero) for record in workers]
    spans = zip(*(column.tolist() for column in trace.spans.columns().values()), strict=True)
    rows = [piece for row in spans for piece in _outside(row, pauses)]
    rows += [
        (worker, kind, number, start, end, 0.0, "")
        for worker, own in enumerate(pauses)
        for number, (kind, start, end) in enumerate(own)
    ]
    took = [resume.ready - resume.failed for resume in resumes]
    return replace(trace, spans=Spans.of_rows(rows), metadata=trace.metadata | {"restarts_took_seconds": took})


def _pauses(saves: list[list[float]], resumes: Sequence[Resumed], zero: float) -> list[Pause]:
    """A worker's pauses in order, from the rows of its checkpoints and restarts."""
    pauses = [(SpanKind.CHECKPOINT, start, end) for _, start, end in saves]
    since = zero
    for resume in resumes:
        since = max([since, *(end for _, _, end in saves if end <= resume.failed)])
        pauses += [(SpanKind.LOST, since, resume.failed), (SpanKind.RESTART, resume.failed, resume.start)]
        since = resume.start
    return sorted(((kind, start - zero, end - zero) for kind, start, end in pauses if end > start), key=itemgetter(1))


def _outside(row: Span, pauses: Sequence[Sequence[Pause]]) -> list[Span]:
    """The span itself; of a worker's wait, only the parts outside the worker's pauses."""
    worker, kind, step, start, end, num_bytes, label = row
    if kind != SpanKind.WAIT or worker >= len(pauses):
        return [row]
    bounds = [start]
    for _, begin, stop in pauses[worker]:
        if begin < end and stop > start:
            bounds += [max(begin, start), min(stop, end)]
    bounds.append(end)
    pieces = zip(bounds[::2], bounds[1::2], strict=True)
    return [(worker, kind, step, begin, stop, num_bytes, label) for begin, stop in pieces if stop > begin]
