"""Traces: tables, and files that lose nothing."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distsim.errors import InputError
from distsim.trace import (
    NO_SERVER,
    NO_VERSION,
    Contributions,
    SpanKind,
    Spans,
    Texts,
    Trace,
    TraceBuilder,
    Transfers,
    Updates,
)
from distsim.trace.tables import Table
from distsim.trace.texts import joined
from distsim.trace.trace import TABLES

SUFFIXES = (".npz", ".json", ".json.gz")
WORKERS, SERVERS = 3, 1
ODD = [-0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 0.1 + 0.2, 1e-9, 1.7976931348623157e308]


def two_steps(producer: str = "simulated") -> Trace:
    """Two steps of backup training with one server: worker 2 is late, dropped, and its push overlaps an answer."""
    builder = TraceBuilder()
    for worker, end in ((0, 1.0), (1, 1.5), (2, 2.4)):
        builder.span(worker, SpanKind.COMPUTE, 0, 0.0, end)
    builder.push(0, 3, 0, 4e6, 1.0, 1.4)
    builder.push(1, 3, 0, 4e6, 1.5, 2.0)
    builder.applied(1, 0, 0, read_version=0, server=3)
    builder.applied(1, 1, 0, read_version=0, server=3)
    builder.update(1, 2.0, server=3)
    builder.pull(0, 3, 0, 4e6, asked_seconds=1.4, start_seconds=2.0, end_seconds=2.8)
    builder.pull(1, 3, 0, 4e6, asked_seconds=2.0, start_seconds=2.0, end_seconds=2.8)
    builder.push(2, 3, 0, 4e6, 2.4, 3.0)
    builder.not_applied(2, 0, read_version=0, cancelled=False, server=3)
    builder.pull(2, 3, 0, 4e6, asked_seconds=3.0, start_seconds=3.0, end_seconds=3.4)
    for worker, end in ((0, 3.8), (1, 3.9)):
        builder.span(worker, SpanKind.COMPUTE, 1, 2.8, end)
    builder.push(0, 3, 1, 4e6, 3.8, 4.2)
    builder.push(1, 3, 1, 4e6, 3.9, 4.5)
    builder.applied(2, 0, 1, read_version=1, server=3)
    builder.applied(2, 1, 1, read_version=1, server=3)
    builder.update(2, 4.5, server=3)
    return builder.build(WORKERS, SERVERS, producer, note="grüße ∑ 🏎")


def bits(trace: Trace) -> dict[str, Any]:
    """Everything a trace holds, as bytes: -0.0 differs from 0.0, and float64 from float32."""
    columns = {
        f"{name}.{key}": (column.dtype.str, column.tobytes())
        for name in TABLES
        for key, column in getattr(trace, name).columns().items()
    }
    return columns | {"metadata": json.dumps(trace.metadata)}


class Given:
    """Columns that a table follows from."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def columns(self) -> dict[str, Any]:
        return self._columns


def test_a_table_for_later_is_worked_out_once_when_it_is_asked_for() -> None:
    asked: list[str] = []

    class Noted(Given):
        def columns(self) -> dict[str, Any]:
            asked.append("columns")
            return super().columns()

    whole = two_steps()
    later = Updates.later(Noted({"version": [1, 2], "server": [3, 3], "time_seconds": [2.0, 4.5]}))
    trace = replace(whole, updates=later)
    assert len(trace.updates) == 2
    assert not hasattr(later, "nonsense")
    assert asked == []
    assert bits(trace) == bits(whole)
    assert trace == whole
    assert trace.total_seconds == 4.5
    assert asked == ["columns"]


def test_rows_of_a_table_for_later_can_be_chosen_before_a_column_is_read() -> None:
    later = Updates.later(Given({"version": [1, 2], "server": [3, 3], "time_seconds": [2.0, 4.5]}))
    assert later.where(np.array([False, True])) == Updates.of_rows([(2, 3, 4.5)])


def test_texts_of_a_table_for_later_are_worked_out_like_its_other_columns() -> None:
    texts = Texts(np.array([1, 0]), ["", "cancelled"])
    columns = {"worker": [0, 1], "kind": [0, 0], "step": [0, 0], "start_seconds": [0.0, 0.0], "bytes": [0.0, 0.0]}
    later = Spans.later(Given(columns | {"end_seconds": [1.0, 2.0], "label": texts}))
    assert later.label.tolist() == ["cancelled", ""]
    assert later.label is later.label
    assert not hasattr(Spans.__new__(Spans), "label")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_a_table_for_later_is_copied_as_what_it_is(copied: Callable[[Updates], Updates]) -> None:
    later = Updates.later(Given({"version": [1], "server": [3], "time_seconds": [2.0]}))
    assert copied(later) == Updates.of_rows([(1, 3, 2.0)])


# Random tables: any value that a column may hold

RANKS = st.integers(0, WORKERS + SERVERS - 1)
FLOATS = st.sampled_from(ODD) | st.floats(allow_nan=False, allow_infinity=False)
NOT_NEGATIVE = FLOATS.filter(lambda value: value >= 0)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "worker": st.integers(0, WORKERS - 1),
    "source": RANKS,
    "target": RANKS,
    "server": st.sampled_from([NO_SERVER, WORKERS]),
    "kind": st.sampled_from([int(kind) for kind in SpanKind]),
    "label": st.text(max_size=8).map(lambda text: text.rstrip("\0")),  # numpy keeps no zero character at an end
    "applied": st.booleans(),
    "cancelled": st.booleans(),
    "bytes": NOT_NEGATIVE,
    "time_seconds": NOT_NEGATIVE,
    "step": st.integers(0, 2**63 - 1),
    "version": st.integers(1, 2**63 - 1),
    "read_version": st.integers(0, 2**63 - 1),
    "first_item": st.integers(0, 2**31 - 1),
    "items": st.integers(1, 2**31 - 1),
}


@st.composite
def tables(draw: st.DrawFn, table: type[Table]) -> Table:
    rows = draw(st.integers(0, 6))
    columns = {}
    for name, dtype in table.dtypes.items():
        if name in VALUES:
            columns[name] = draw(st.lists(VALUES[name], min_size=rows, max_size=rows))
        elif dtype is np.float64:
            columns[name] = draw(hnp.arrays(np.float64, rows, elements=FLOATS))
        else:
            columns[name] = draw(hnp.arrays(dtype, rows))
    if "end_seconds" in columns:  # nothing ends before it starts
        swapped = columns["end_seconds"] < columns["start_seconds"]
        both = columns["start_seconds"], columns["end_seconds"]
        columns["start_seconds"], columns["end_seconds"] = np.where(swapped, both[::-1], both)
    if "applied" in columns:
        columns["version"] = np.where(columns["applied"], columns["version"], NO_VERSION)
    return table.of_columns(columns)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
traces = st.builds(
    lambda spans, updates, contributions, transfers, producer, more: Trace(
        spans, updates, contributions, transfers,
        more | {"producer": producer, "workers": WORKERS, "servers": SERVERS},
    ),
    *(tables(table) for table in TABLES.values()),
    st.sampled_from(["simulated", "measured"]),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
)  # fmt: skip
EMPTY = Trace(
    Spans.empty(), Updates.empty(), Contributions.empty(), Transfers.empty(),
    {"producer": "simulated", "workers": WORKERS, "servers": SERVERS},
)  # fmt: skip


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(trace=traces)
@example(trace=EMPTY)
@example(trace=two_steps())
def test_saving_and_loading_keeps_every_bit(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, trace: Trace
) -> None:
    path = tmp_path_factory.getbasetemp() / f"kept{suffix}"
    trace.save(path)
    again = Trace.load(path)
    assert bits(again) == bits(trace)
    assert again == trace


@given(trace=traces)
def test_the_same_trace_gives_the_same_packed_bytes(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    one, other = (tmp_path_factory.getbasetemp() / f"{name}.json.gz" for name in ("one", "other"))
    trace.save(one)
    os.utime(one, (1, 1))
    Trace.load(one).save(other)
    assert one.read_bytes() == other.read_bytes()


def test_odd_floats_of_a_span_come_back(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for value in ODD:
        builder.span(0, SpanKind.WAIT, 0, value, value, num_bytes=abs(value), label="ß\n\"'\t\u2028")
    trace = builder.build(1, 0, "measured")
    for suffix in SUFFIXES:
        trace.save(tmp_path / f"odd{suffix}")
        again = Trace.load(tmp_path / f"odd{suffix}")
        assert again.spans.start_seconds.tobytes() == np.array(ODD).tobytes()
        assert again.spans.bytes.tobytes() == np.abs(ODD).tobytes()
        assert again.spans.label.tolist() == ["ß\n\"'\t\u2028"] * len(ODD)


# Writing


def no_disk(*_: object) -> None:
    raise OSError("the disk is gone")


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix in SUFFIXES:
        path = tmp_path / f"run{suffix}"
        two_steps().save(path)
        before = path.read_bytes()
        broken = two_steps()
        broken.metadata["not JSON"] = object()
        with pytest.raises(TypeError):
            broken.save(path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", no_disk)
            with pytest.raises(OSError, match="the disk is gone"):
                EMPTY.save(path)
        assert path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"run{suffix}" for suffix in SUFFIXES)


def test_a_new_file_replaces_the_old_one_and_has_the_usual_rights(tmp_path: Path) -> None:
    path, usual = tmp_path / "run.json", tmp_path / "usual"
    usual.touch()
    EMPTY.save(path)
    two_steps().save(path)
    assert Trace.load(path) == two_steps()
    assert path.stat().st_mode == usual.stat().st_mode
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["run.txt", "run", "run.json.zip", "run.gz"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    for action in (EMPTY.save, Trace.load):
        with pytest.raises(InputError, match=r"must end in \.npz, \.json, \.json\.gz\. Cure: "):
            action(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_or_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for path, reason in [
        (tmp_path / "none" / "run.json", "cannot be written"),
        (tmp_path / "folder.json", "is a folder"),
    ]:
        with pytest.raises(InputError, match=f"{reason}.*Cure: "):
            EMPTY.save(path)


# Files that are no traces


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no trace",
        bytes(range(256)) * 10,
        b"PK\x03\x04 not a zip archive",
        b"\x1f\x8b not gzip",
        b"[]",
        b"[" * 100_000,
        b'{"traceEvents": [{"ph": "X", "cat": "gpu", "name": "kernel", "ts": 0, "dur": 1, "pid": 0, "tid": 0}]}',
        b'{"traceEvents": []}',
        b'{"traceEvents": [], "otherData": {"distsim": []}}',
        b'{"traceEvents": [], "otherData": {"distsim": {"producer": "simulated"}}}',
        b'{"traceEvents": [{"ph": "X", "cat": "updates", "args": {"version": 1e99, "server": 0, "time_seconds": 0}}]}',
        b'{"traceEvents": [{"ph": "i", "cat": "updates", "args": {"version": "x", "server": 0, "time_seconds": 0}}],'
        b' "otherData": {"distsim": {"producer": "simulated", "workers": 1, "servers": 0}}}',
    ],
    ids=lambda content: repr(content[:24]),
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"foreign{suffix}"
    for written in {content, gzip.compress(content) if suffix == ".json.gz" else content}:
        path.write_bytes(written)
        with pytest.raises(InputError, match="Cure: name a file that --trace wrote") as caught:
            Trace.load(path)
        assert path.name in str(caught.value)


def test_arrays_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "others.npz"
    np.savez(path, weights=np.zeros(3))
    with pytest.raises(InputError, match="is not a trace"):
        Trace.load(path)
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(InputError, match="is not a trace"):
        Trace.load(path)
    np.savez(path, allow_pickle=True, objects=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="is not a trace"):
        Trace.load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        with pytest.raises(InputError, match="cannot be read"):
            Trace.load(tmp_path / f"none{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truncated_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"whole{suffix}"
    two_steps().save(path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 3, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            Trace.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_but_never_breaks(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    two_steps().save(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        assert isinstance(Trace.load(path), Trace)


# Tables


def test_staleness_counts_the_versions_between_read_and_application() -> None:
    builder = TraceBuilder()
    builder.applied(1, 0, 0, read_version=0)
    builder.applied(2, 1, 0, read_version=0)
    builder.not_applied(2, 0, read_version=0, cancelled=True)
    builder.applied(9, 2, 1, read_version=2)
    assert builder.build(3, 0, "simulated").contributions.staleness.tolist() == [0, 1, 6]


def test_the_total_is_the_time_of_the_last_update() -> None:
    assert two_steps().total_seconds == 4.5
    assert EMPTY.total_seconds == 0.0


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        Updates(version=[1, 2], server=[0], time_seconds=[0.5, 1.0])


def test_a_column_of_one_number_is_that_number_in_memory() -> None:
    """Millions of rows carry the same bytes, in the same collective."""
    builder = TraceBuilder()
    for first in (0, 3):
        builder.extend(
            "transfers", source=np.arange(first, first + 3), target=7, bytes=5.0, start_seconds=np.zeros(3),
            end_seconds=np.ones(3), chunk=first, collective=-1,
        )  # fmt: skip
    transfers = builder.build(workers=7, servers=1, producer="simulated").transfers
    assert transfers.bytes.tolist() == [5.0] * 6
    assert transfers.chunk.tolist() == [0] * 3 + [3] * 3
    assert (transfers.bytes.dtype, transfers.collective.dtype) == (np.float64, np.int64)
    assert transfers.bytes.strides == transfers.target.strides == transfers.collective.strides == (0,)


@pytest.mark.parametrize("texts", [2, 255, 256, 257, 70_000])
def test_texts_keep_apart_however_many_there_are(texts: int) -> None:
    several = [f"text {number}" for number in range(texts)]
    numbers = np.arange(texts)
    column = joined(["", Texts(numbers, several), Texts(numbers[::-1], several)], [1, texts, texts])
    assert np.asarray(column).tolist() == ["", *several, *reversed(several)]


def test_sorting_forgets_the_order_of_rows_and_nothing_else() -> None:
    trace = two_steps()
    backwards = (getattr(trace, name).where(np.arange(len(getattr(trace, name)))[::-1]) for name in TABLES)
    mixed = Trace(*backwards, trace.metadata)
    assert mixed != trace
    assert mixed.sorted() == trace.sorted()
    assert len(mixed.sorted().spans) == len(trace.spans)


def test_traces_differ_where_a_value_does() -> None:
    trace = two_steps()
    for name in TABLES:
        table = getattr(trace, name)
        for key, column in table.columns().items():
            other = column.copy()
            other[-1] = "other" if other.dtype.kind == "U" else not other[-1] if other.dtype == bool else other[-1] + 1
            assert table.of_columns(table.columns() | {key: other}) != table


def test_data_frames_have_the_columns_and_words_for_kinds() -> None:
    frames = two_steps().to_pandas()
    assert {name: list(frame.columns) for name, frame in frames.items()} == {
        name: list(table.dtypes) for name, table in TABLES.items()
    }
    assert frames["spans"].kind.tolist()[:4] == ["compute", "compute", "compute", "send"]
    assert frames["transfers"].bytes.sum() == 4e6 * 8


def test_a_part_of_a_run_has_what_happens_then(tmp_path: Path) -> None:
    """From 2.5 s to 4 s: answers still arrive, worker 2's late gradient is dropped, and the next step is computed."""
    part = two_steps().between(2.5, 4.0)
    spans = sorted(zip(part.spans.start_seconds.tolist(), part.spans.worker.tolist(), strict=True))
    assert spans == [(2.0, 0), (2.0, 1), (2.0, 3), (2.0, 3), (2.4, 2), (2.4, 3), (2.8, 0), (2.8, 1), (3.0, 2), (3.0, 3),
                     (3.8, 0), (3.8, 3), (3.9, 1), (3.9, 3)]  # fmt: skip
    assert sorted(part.transfers.start_seconds.tolist()) == [2.0, 2.0, 2.4, 3.0, 3.8, 3.9]
    assert len(part.updates) == 0
    assert part.contributions == two_steps().contributions.where(~two_steps().contributions.applied)
    assert part.metadata == two_steps().metadata | {"between_seconds": [2.5, 4.0]}
    for suffix in SUFFIXES:
        part.save(tmp_path / f"part{suffix}")
        assert Trace.load(tmp_path / f"part{suffix}") == part


def test_an_update_brings_its_gradients_and_a_part_may_be_the_whole() -> None:
    trace = two_steps()
    first = trace.between(0.0, 2.0)
    assert first.updates.version.tolist() == [1]
    assert first.contributions.worker.tolist() == [0, 1, 2], "worker 2 computes the gradient that is dropped later"
    whole = trace.between(-1.0, 100.0)
    assert all(getattr(whole, name) == getattr(trace, name) for name in TABLES)


@pytest.mark.parametrize("times", [(2.0, 1.0), (1.0, 1.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_times_that_bound_no_part_are_refused(times: tuple[float, float]) -> None:
    with pytest.raises(InputError, match=r"between = .*: must be two times, the earlier one first. Cure: "):
        two_steps().between(*times)
