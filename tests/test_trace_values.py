"""Traces whose files hold what no run leaves behind: refused with the file's name, and whatever is read can be used."""

from __future__ import annotations

import copy
import gzip
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distsim.calibration import Calibration, Exchange
from distsim.cli.output import console
from distsim.cli.summary_tables import causes_line, comparison_table, summary_table
from distsim.comparison import compare, link_differences
from distsim.errors import InputError
from distsim.examples import example
from distsim.metrics import bytes_per_link, staleness_histogram, summary
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace
from distsim.trace.trace import TABLES
from tests.counts import reduced

Document = dict[str, Any]
GOOD = simulate(
    example("backup_server").replacing({"steps": 2, "cluster.workers": 3}),
    Calibration((Exchange("parameter_server", 3, 1e9, 1e-4, 1e-3, ((1e6, 0.1),)),)),
)
NOT_A_TRACE = "is not a trace that distsim wrote"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """The good trace as JSON."""
    path = tmp_path_factory.mktemp("good") / "good.json"
    GOOD.save(path)
    found: Document = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The good trace as named columns."""
    path = tmp_path_factory.mktemp("good") / "good.npz"
    GOOD.save(path)
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


def refused(path: Path) -> str:
    with pytest.raises(InputError, match="Cure: name a file that --trace wrote") as caught:
        Trace.load(path)
    assert path.name in str(caught.value)
    return str(caught.value)


def spoilt(arrays: dict[str, np.ndarray], name: str, row: int, value: Any) -> dict[str, np.ndarray]:
    column = arrays[name].astype(np.result_type(arrays[name], np.asarray(value)))
    column[row] = value
    return arrays | {name: column}


WRONG_VALUES: list[tuple[str, Any, str]] = [
    ("spans.worker", 4, "spans.worker = 4 in row 1 must be a rank, 0 to 3"),
    ("spans.worker", -1, "must be a rank"),
    ("spans.worker", 2**40, "must fit in int32"),
    ("spans.kind", 99, "spans.kind = 99 in row 1 must be a kind of span, 0 to 12"),
    ("spans.kind", -1, "must be a kind of span"),
    ("spans.step", -1, "must be at least 0"),
    ("spans.start_seconds", math.nan, "spans.start_seconds = nan in row 1 must be finite"),
    ("spans.start_seconds", 1e9, "must not lie before start_seconds"),
    ("spans.end_seconds", -1e9, "spans.end_seconds = -1000000000.0 in row 1 must not lie before start_seconds"),
    ("spans.end_seconds", math.inf, "must be finite"),
    ("spans.bytes", -1.0, "must be at least 0"),
    ("updates.version", 0, "updates.version = 0 in row 1 must be at least 1"),
    ("updates.server", 2, "must be -1, or the rank of a server"),
    ("updates.server", 4, "must be -1, or the rank of a server"),
    ("updates.time_seconds", -1.0, "must be at least 0"),
    ("updates.time_seconds", math.nan, "must be finite"),
    ("contributions.worker", 3, "must be a worker, 0 to 2"),
    ("contributions.version", 0, "must be at least 1 where applied, else -1"),
    ("contributions.server", 0, "must be -1, or the rank of a server"),
    ("contributions.step", -1, "must be at least 0"),
    ("contributions.read_version", -1, "must be at least 0"),
    ("contributions.first_item", -1, "must be at least 0"),
    ("contributions.items", 0, "must be at least 1"),
    ("transfers.source", 4, "must be a rank, 0 to 3"),
    ("transfers.target", -1, "must be a rank, 0 to 3"),
    ("transfers.bytes", -1.0, "must be at least 0"),
    ("transfers.bytes", math.nan, "must be finite"),
    ("transfers.end_seconds", -1.0, "must not lie before start_seconds"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_VALUES)
def test_a_value_that_no_run_leaves_is_named(
    tmp_path: Path, arrays: dict[str, np.ndarray], name: str, value: Any, message: str
) -> None:
    np.savez(tmp_path / "wrong.npz", **spoilt(arrays, name, 1, value))
    found = refused(tmp_path / "wrong.npz")
    assert NOT_A_TRACE in found
    assert message in found
    assert f"{name} = " in found or "start_seconds" in name  # of which the message tells that the end lies before it


@pytest.mark.parametrize(("name", "value", "message"), WRONG_VALUES)
def test_so_it_is_in_json(tmp_path: Path, document: Document, name: str, value: Any, message: str) -> None:
    table, _, key = name.partition(".")
    wrong = copy.deepcopy(document)
    rows = [event["args"] for event in wrong["traceEvents"] if event["ph"] in ("X", "i", "b") and event["cat"] == table]
    rows[1][key] = value
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    assert message in refused(tmp_path / "wrong.json")


WRONG_COLUMNS: dict[str, tuple[str, Callable[[np.ndarray], Any], str]] = {
    "fractions for ranks": ("spans.worker", lambda column: column + 0.5, "spans.worker holds values of another type"),
    "texts for times": ("spans.start_seconds", lambda column: column.astype(str), "values of another type than float"),
    "numbers for texts": ("spans.label", lambda column: np.arange(len(column)), "values of another type than str"),
    "numbers for yes or no": ("contributions.applied", lambda column: column.astype(int), "another type than bool"),
    "complex times": ("updates.time_seconds", lambda column: column + 0j, "values of another type than float"),
    "a table for a column": ("spans.step", lambda column: column[:, None], "spans.step is no column"),
    "a number for a column": ("spans.step", lambda _: np.int64(3), "spans.step is no column"),
    "half a column": ("spans.step", lambda column: column[: len(column) // 2], "differ in length"),
    "bytes for texts": ("spans.label", lambda column: np.array([b"x"] * len(column)), "another type than str"),
    "half a character": (
        "spans.label", lambda column: np.array(["\ud800"] * len(column)), "characters that there are not",
    ),
    "no columns": ("metadata", lambda _: np.array("[]"), "its metadata are no table"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "spoil", "message"), WRONG_COLUMNS.values(), ids=WRONG_COLUMNS)
def test_a_column_of_another_kind_is_named(
    tmp_path: Path, arrays: dict[str, np.ndarray], name: str, spoil: Callable[[np.ndarray], Any], message: str
) -> None:
    np.savez(tmp_path / "wrong.npz", **(arrays | {name: spoil(arrays[name])}))
    assert message in refused(tmp_path / "wrong.npz")


def test_a_lacking_column_is_named(tmp_path: Path, arrays: dict[str, np.ndarray], document: Document) -> None:
    np.savez(tmp_path / "lacking.npz", **{name: column for name, column in arrays.items() if name != "updates.server"})
    assert "it lacks updates.server" in refused(tmp_path / "lacking.npz")
    lacking = copy.deepcopy(document)
    for event in lacking["traceEvents"]:
        if event.get("cat") == "updates":
            del event["args"]["server"]
    (tmp_path / "lacking.json").write_text(json.dumps(lacking))
    assert "one of the updates has no server" in refused(tmp_path / "lacking.json")


def test_columns_of_other_machines_are_read(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    """The other byte order, and other widths, lose nothing."""
    columns = {name: column for name, column in arrays.items() if name != "metadata"}
    other = {name: column.astype(column.dtype.newbyteorder(">")) for name, column in columns.items()}
    other["updates.version"] = arrays["updates.version"].astype(np.uint8)
    other["spans.bytes"] = arrays["spans.bytes"].astype(np.int64)
    np.savez(tmp_path / "other.npz", metadata=arrays["metadata"], **other)
    assert Trace.load(tmp_path / "other.npz") == GOOD


WRONG_METADATA: list[tuple[Callable[[Document], object], str]] = [
    (lambda metadata: metadata.pop("producer"), "its metadata lacks producer"),
    (lambda metadata: metadata.update(producer="dreamt"), "its producer = 'dreamt' must be 'simulated' or 'measured'"),
    (lambda metadata: metadata.update(producer=["simulated"]), "must be 'simulated' or 'measured'"),
    (lambda metadata: metadata.update(workers=0), "its workers = 0 must be a whole number from 1 to"),
    (lambda metadata: metadata.update(workers=10**9), "its workers = 1000000000 must be a whole number from 1 to"),
    (lambda metadata: metadata.update(workers="3"), "its workers = '3' must be a whole number"),
    (lambda metadata: metadata.update(workers=3.0), "its workers = 3.0 must be a whole number"),
    (lambda metadata: metadata.update(servers=True), "its servers = True must be a whole number"),
    (lambda metadata: metadata.update(servers=-1), "its servers = -1 must be a whole number from 0"),
    (lambda metadata: metadata.update(servers=2), "its servers = 2 must be the scenario's, 1"),
    (lambda metadata: metadata.update(workers=4), "its workers = 4 must be the scenario's, 3"),
    (lambda metadata: metadata.update(scenario=5), "its scenario: "),
    (lambda metadata: metadata["scenario"].update(steps=-1), "its scenario: steps = -1: must be at least 1"),
    (lambda metadata: metadata["scenario"].pop("cluster"), "its scenario: cluster is missing"),
]


@pytest.mark.parametrize(("spoil", "message"), WRONG_METADATA)
def test_metadata_that_no_run_leaves_are_named(
    tmp_path: Path, document: Document, spoil: Callable[[Document], object], message: str
) -> None:
    wrong = copy.deepcopy(document)
    spoil(wrong["otherData"]["distsim"])
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    assert message in refused(tmp_path / "wrong.json")


def test_events_of_others_are_named(tmp_path: Path, document: Document) -> None:
    for event, message in (({"ph": "X", "cat": "gpu", "args": {}}, "'gpu'"), (5, "event 0"), ({"ph": "X"}, "'cat'")):
        (tmp_path / "wrong.json").write_text(json.dumps(document | {"traceEvents": [event]}))
        assert message in refused(tmp_path / "wrong.json")


def test_a_trace_without_its_scenario_is_read_but_not_compared(tmp_path: Path, document: Document) -> None:
    without = copy.deepcopy(document)
    del without["otherData"]["distsim"]["scenario"]
    (tmp_path / "without.json").write_text(json.dumps(without))
    trace = Trace.load(tmp_path / "without.json")
    assert trace.spans == GOOD.spans
    with pytest.raises(InputError, match="the trace holds no scenario"):
        compare(trace, GOOD)


def test_a_trace_of_replayed_times_is_read_where_their_file_is_not(tmp_path: Path) -> None:
    times = tmp_path / "times.csv"
    times.write_text("0.1 0.2 0.3\n")
    compute = {"distribution": "replay", "file": str(times)}
    trace = simulate(Scenario.of(GOOD.scenario.table() | {"compute": compute}))
    trace.save(tmp_path / "run.npz")
    times.unlink()
    again = Trace.load(tmp_path / "run.npz")
    assert compare(again, again).error_pct.total == 0.0
    with pytest.raises(InputError, match=r"times\.csv' cannot be read"):
        simulate(again.scenario)


@pytest.mark.parametrize("suffix", [".npz", ".json", ".json.gz"])
def test_a_calibrated_trace_comes_back(tmp_path: Path, suffix: str) -> None:
    GOOD.save(tmp_path / f"run{suffix}")
    assert Trace.load(tmp_path / f"run{suffix}") == GOOD


# Damaged at random

HOSTILE: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 4, 99, 2**31, 2**63, 10**400, -0.5, 0.5, 1e300, -1e300, math.nan, math.inf,
    "", "x", "1", "\ud800", [], {}, [1], {"a": 1}, "ring", "1 GB/s", 1e-300,
]  # fmt: skip


def use(trace: Trace) -> None:
    """All that the command line does with a trace; times of 1e300 s may add up to infinity."""
    shown = console()
    shown.file = io.StringIO()
    with np.errstate(all="ignore"):
        shown.print(summary_table("run", trace.producer, summary(trace)))
        bytes_per_link(trace)
        staleness_histogram(trace)
        for pair in ((trace, GOOD), (GOOD, trace)):
            compared = compare(*pair)
            shown.print(comparison_table(compared), causes_line(compared), *link_differences(*pair))


@settings(max_examples=reduced(200), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_json_with_any_value_in_any_place_is_refused_or_used(
    tmp_path_factory: pytest.TempPathFactory, document: Document, or_input_error: Any, data: st.DataObject
) -> None:
    damaged = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        inner: Any = damaged if data.draw(st.booleans()) else damaged.get("otherData")
        while isinstance(inner, dict | list):
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(inner[key], dict | list) and data.draw(st.integers(0, 9)):
                inner = inner[key]
                continue
            if data.draw(st.integers(0, 9)):
                inner[key] = copy.deepcopy(data.draw(st.sampled_from(HOSTILE)))
            else:
                del inner[key]
            break
    path = tmp_path_factory.getbasetemp() / "damaged.json.gz"
    path.write_bytes(gzip.compress(json.dumps(damaged).encode(), compresslevel=1))
    with or_input_error():
        use(Trace.load(path))


@settings(max_examples=reduced(200), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_columns_with_any_value_in_any_place_are_refused_or_used(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray], or_input_error: Any, data: st.DataObject
) -> None:
    names = [f"{name}.{key}" for name, table in TABLES.items() for key in table.dtypes]
    damaged = dict(arrays)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(names))
        column = damaged[name]
        match data.draw(st.integers(0, 9)):
            case 0:
                damaged[name] = column[data.draw(st.integers(0, 3)) :]
            case 1:
                numbers = np.arange(len(column)) if column.dtype.kind == "U" else column
                damaged[name] = numbers.astype(data.draw(st.sampled_from(["U9", "f4", "?", "S5", "i2", ">i8"])))
            case _ if column.dtype.kind != "U" and column.ndim and len(column):
                value = data.draw(st.sampled_from([-(2**62), -1, 0, 1, 2, 3, 4, 5, 99, 2**62, *SpanKind]))
                floats = st.sampled_from([math.nan, math.inf, 1e300, -1e300, 5e-324, -0.5])
                if column.dtype.kind == "f" and data.draw(st.booleans()):
                    value = data.draw(floats)
                column = column.astype(np.result_type(column, np.asarray(value)))
                column[data.draw(st.integers(0, len(column) - 1))] = value
                damaged[name] = column
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    np.savez(path, **damaged)
    with or_input_error():
        use(Trace.load(path))
