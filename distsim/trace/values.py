"""Checks the values in the columns of a trace file, so that later readers of the trace can rely on them.

The checks ensure that every number is a number, and that every rank, kind and version exists. `invariants` checks
whether the run makes sense.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.arrays import Flags
from distsim.scenario import Scenario
from distsim.trace.tables import NO_SERVER, NO_VERSION, Contributions, SpanKind, Spans, Table, Transfers, Updates
from distsim.trace.trace import TABLES, Trace

LARGEST_RANKS = 2 * 10**6  # more ranks are refused, because loops go over all ranks
READ_AS = {"i": "iu", "f": "fiu", "b": "b", "U": "U"}  # by kind of column: the kinds that fit without loss


def table_of(name: str, columns: Mapping[str, Any]) -> Table:
    """The table `name` made of a file's columns. Raises ValueError where a value has another type."""
    table = TABLES[name]
    return table.of_columns(
        {key: _column(f"{name}.{key}", columns[key], np.dtype(table.dtypes[key])) for key in columns}
    )


def _column(name: str, values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} is no column of values")
    if not column.size:
        return np.empty(0, dtype)
    if column.dtype.kind not in READ_AS[dtype.kind]:
        raise ValueError(f"{name} holds values of another type than {dtype.name.rstrip('0123456789')}")
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        _all(name, (column >= limits.min) & (column <= limits.max), column, f"must fit in {dtype.name}")
    if dtype.kind == "f":
        _all(name, np.isfinite(column), column, "must be finite")
    if dtype.kind == "U":
        characters = column.astype(column.dtype.newbyteorder("=")).view(np.uint32)
        if ((characters > sys.maxunicode) | ((characters >= 0xD800) & (characters <= 0xDFFF))).any():
            raise ValueError(f"{name} holds a text with characters that there are not")
    return column


def _all(name: str, holds: Flags, column: NDArray[Any], rule: str) -> None:
    wrong = np.flatnonzero(~holds)
    if len(wrong):
        raise ValueError(f"{name} = {column[wrong[0]].item()!r} in row {wrong[0]} {rule}")


def check(trace: Trace) -> None:
    """Raises ValueError for the first wrong value. The error names the place and the rule."""
    _check_metadata(trace.metadata)
    tables = (trace.spans, trace.updates, trace.contributions, trace.transfers)
    for name, table, rules in zip(TABLES, tables, _rules(trace), strict=True):
        if table.derivation is not None:
            continue  # its numbers were checked when they were read
        for key, holds, rule in rules:
            _all(f"{name}.{key}", holds, getattr(table, key), rule)


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict):
        raise ValueError("its metadata are no table")
    absent = [key for key in ("producer", "workers", "servers") if key not in metadata]
    if absent:
        raise ValueError(f"its metadata lacks {', '.join(absent)}")
    if metadata["producer"] not in ("simulated", "measured"):
        raise ValueError(f"its producer = {metadata['producer']!r} must be 'simulated' or 'measured'")
    for key, least in (("workers", 1), ("servers", 0)):
        count = metadata[key]
        if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= LARGEST_RANKS:
            raise ValueError(f"its {key} = {count!r} must be a whole number from {least} to {LARGEST_RANKS}")
    if "scenario" in metadata:
        scenario = Scenario.of(metadata["scenario"], source="its scenario", recorded=True)
        for key, there in (("workers", scenario.cluster.workers), ("servers", len(scenario.servers))):
            if metadata[key] != there:
                raise ValueError(f"its {key} = {metadata[key]} must be the scenario's, {there}")


Rules = Iterator[tuple[str, Flags, str]]  # the column, whether each of its rows is right, and the rule


def _rules(trace: Trace) -> Iterator[Rules]:
    workers, ranks = trace.workers, trace.workers + trace.servers
    yield _spans(trace.spans, ranks)
    yield _updates(trace.updates, workers, ranks)
    yield _contributions(trace.contributions, workers, ranks)
    yield _transfers(trace.transfers, ranks)


def _spans(spans: Spans, ranks: int) -> Rules:
    yield "worker", _within(spans.worker, 0, ranks), f"must be a rank, 0 to {ranks - 1}"
    yield "kind", np.isin(spans.kind, list(SpanKind)), f"must be a kind of span, 0 to {max(SpanKind)}"
    yield "step", spans.step >= 0, "must be at least 0"
    yield "end_seconds", spans.end_seconds >= spans.start_seconds, "must not lie before start_seconds"
    yield "bytes", spans.bytes >= 0, "must be at least 0"


def _updates(updates: Updates, workers: int, ranks: int) -> Rules:
    yield "version", updates.version >= 1, "must be at least 1"
    yield "server", _is_server(updates.server, workers, ranks), f"must be {NO_SERVER}, or the rank of a server"
    yield "time_seconds", updates.time_seconds >= 0, "must be at least 0"


def _contributions(contributions: Contributions, workers: int, ranks: int) -> Rules:
    versions = np.where(contributions.applied, contributions.version >= 1, contributions.version == NO_VERSION)
    yield "version", versions, f"must be at least 1 where applied, else {NO_VERSION}"
    yield "server", _is_server(contributions.server, workers, ranks), f"must be {NO_SERVER}, or the rank of a server"
    yield "worker", _within(contributions.worker, 0, workers), f"must be a worker, 0 to {workers - 1}"
    yield "step", contributions.step >= 0, "must be at least 0"
    yield "read_version", contributions.read_version >= 0, "must be at least 0"
    yield "first_item", contributions.first_item >= 0, "must be at least 0"
    yield "items", contributions.items >= 1, "must be at least 1"


def _transfers(transfers: Transfers, ranks: int) -> Rules:
    for key in ("source", "target"):
        yield key, _within(getattr(transfers, key), 0, ranks), f"must be a rank, 0 to {ranks - 1}"
    yield "bytes", transfers.bytes >= 0, "must be at least 0"
    yield "end_seconds", transfers.end_seconds >= transfers.start_seconds, "must not lie before start_seconds"


def _within(column: NDArray[Any], least: int, end: int) -> Flags:
    found: Flags = (column >= least) & (column < end)
    return found


def _is_server(column: NDArray[Any], workers: int, ranks: int) -> Flags:
    found: Flags = (column == NO_SERVER) | _within(column, workers, ranks)
    return found
