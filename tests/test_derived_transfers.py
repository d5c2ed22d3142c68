"""Transfers that follow from a few numbers: they are, bit for bit, the rows of a file or of a part of a run."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.errors import InputError
from distsim.link_traffic import bytes_by_link, carried_by_link, ended
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace, Transfers
from distsim.trace.derived import CollectiveTransfers
from distsim.trace.trace import TABLES

NODES = {"per_node": 2, "bandwidth": "100 GB/s", "latency": "2 us"}
POLICIES: list[dict[str, Any]] = [
    {"kind": "synchronous"},
    {"kind": "local_sgd", "period": 3},
    {"kind": "ddp", "accumulate": 2, "bucket": "1 MiB", "first_bucket": "300 kB"},
]
KINDS = ("ring", "tree", "halving_doubling", "hierarchical")


def scenario(policy: dict[str, Any], kind: str, **more: Any) -> Scenario:
    nodes = {"nodes": NODES} if kind == "hierarchical" else {}
    return Scenario.of(
        {
            "steps": 7,
            "seed": 5,
            "cluster": {"workers": 6, "bandwidth": "1 Gbit/s", "latency": "100 us"} | nodes,
            "compute": {"distribution": "exponential", "mean": "50 ms"},
            "workload": {"gradient": "4 MiB"},
            "policy": policy,
            "communication": {"kind": kind},
        }
        | more
    )


def run(policy: dict[str, Any], kind: str, seed: int, slow: dict[str, Any], *, eager: bool) -> Trace:
    nodes = {"nodes": NODES} if kind == "hierarchical" else {}
    cluster = {"workers": 6, "bandwidth": "1 Gbit/s", "latency": "100 us", "nic": slow} | nodes
    communication = {"kind": kind, "sends": "eager" if eager and kind == "ring" else "rendezvous"}
    return simulate(scenario(policy, kind, seed=seed, cluster=cluster, communication=communication))


RUNS = st.builds(
    run, st.sampled_from(POLICIES), st.sampled_from(KINDS), st.integers(0, 99),
    st.sampled_from([{}, {"4": {"up": "77 Mbit/s"}}]), eager=st.booleans(),
)  # fmt: skip


def plain(trace: Trace) -> Transfers:
    """The rows as a table that follows from nothing."""
    return Transfers(**trace.transfers.columns())


@given(trace=RUNS)
def test_a_file_holds_what_the_rows_follow_from_and_gives_them_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    path = tmp_path_factory.mktemp("derived") / "run.npz"
    assert isinstance(trace.transfers.derivation, CollectiveTransfers)
    trace.save(path)
    loaded = Trace.load(path)
    assert isinstance(loaded.transfers.derivation, CollectiveTransfers)
    assert len(loaded.transfers) == len(trace.transfers)
    for name, column in plain(trace).columns().items():
        assert column.tobytes() == loaded.transfers.columns()[name].tobytes(), name
    assert loaded == trace


Moment = float | tuple[str, int]
MOMENTS = st.floats(-0.1, 1.2) | st.tuples(st.sampled_from(["updates", "starts", "ends"]), st.integers(0, 10**6))


def moment(trace: Trace, rows: Transfers, chosen: Moment) -> float:
    """A share of the run's time, or the moment of an update or of a transfer with this number."""
    if not isinstance(chosen, tuple):
        return chosen * trace.total_seconds
    times = {"updates": trace.updates.time_seconds, "starts": rows.start_seconds, "ends": rows.end_seconds}[chosen[0]]
    return float(times[chosen[1] % len(times)])


@given(trace=RUNS, bounds=st.tuples(MOMENTS, MOMENTS))
def test_a_part_of_the_run_has_the_rows_that_are_under_way_then(trace: Trace, bounds: tuple[Moment, Moment]) -> None:
    rows = plain(trace)
    start, end = sorted(moment(trace, rows, chosen) for chosen in bounds)
    expected = rows.where((rows.start_seconds < end) & (rows.end_seconds > start))
    assert trace.transfers_between(start, end) == expected


@given(trace=RUNS)
def test_the_bytes_of_each_link_need_no_rows(trace: Trace) -> None:
    found = carried_by_link(trace)
    assert "source" not in trace.transfers.__dict__  # nothing was computed
    assert found == pytest.approx(bytes_by_link(trace, ended(trace)), rel=1e-12)


def test_a_table_of_rows_has_parts_too() -> None:
    trace = simulate(scenario({"kind": "synchronous"}, "ring"), engine="story")
    assert trace.transfers.derivation is None
    part, derived = (one.transfers_between(0.1, 0.2).sorted() for one in (trace, simulate(trace.scenario)))
    assert 0 < len(part) < len(trace.transfers)
    for name, column in part.columns().items():
        assert column == pytest.approx(getattr(derived, name), rel=1e-9)


def test_rows_that_fit_no_memory_are_not_computed_and_the_rest_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distsim.trace_size.memory_bytes", lambda: 10**10)
    cluster = {"workers": 3000, "bandwidth": "10 Gbit/s", "latency": "50 us"}
    trace = simulate(scenario({"kind": "synchronous"}, "ring", cluster=cluster, steps=6))
    assert len(trace.transfers) == 6 * 2 * 2999 * 3000
    with pytest.raises(InputError, match=r"transfers of the trace = 107964000: are too many rows.*transfers_between"):
        _ = trace.transfers.source
    with pytest.raises(InputError, match=r"trace events = 108.*take 216 GB of memory.*Cure: save columns.*between"):
        trace.save(tmp_path / "large.json")
    assert not list(tmp_path.iterdir())
    trace.save(tmp_path / "large.npz")
    assert len(Trace.load(tmp_path / "large.npz").transfers) == len(trace.transfers)
    first = trace.updates.time_seconds[0]
    assert len(trace.transfers_between(first - 1e-6, first)) == 3000
    trace.between(first - 1e-6, first).save(tmp_path / "part.json")
    assert len(Trace.load(tmp_path / "part.json").transfers) == 3000
    assert max(carried_by_link(trace).values()) == pytest.approx(6 * 2 * 2999 / 3000 * 4 * 2**20)


@pytest.mark.parametrize("by_call", [False, True])
def test_a_part_between_two_updates_has_the_transfers_that_rounding_ends_after_them(
    by_call: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_call:
        monkeypatch.setattr("distsim.trace.derived.LEAST_ROWS_BY_CALL", -1)
    trace = simulate(scenario({"kind": "synchronous"}, "ring", steps=30))
    rows, updates = plain(trace), trace.updates.time_seconds.tolist()
    expected = [rows.where((rows.start_seconds < end) & (rows.end_seconds > start)) for start, end in pairwise(updates)]
    assert [trace.transfers_between(start, end) for start, end in pairwise(updates)] == expected
    assert len({len(part) for part in expected}) == 2


@settings(max_examples=40)
@given(trace=RUNS, bounds=st.tuples(MOMENTS, MOMENTS))
def test_a_part_that_is_computed_call_by_call_has_the_same_rows(trace: Trace, bounds: tuple[Moment, Moment]) -> None:
    start, end = sorted(moment(trace, plain(trace), chosen) for chosen in bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distsim.trace.derived.LEAST_ROWS_BY_CALL", -1)
        part = trace.transfers_between(start, end)
    assert part == trace.transfers_between(start, end)


@settings(max_examples=40)
@given(trace=RUNS, most=st.sampled_from([1, 100, 1000, 10**6]))
def test_bundles_have_all_bytes_and_begin_and_end_with_their_transfers(trace: Trace, most: int) -> None:
    derivation, rows = trace.transfers.derivation, plain(trace)
    assert isinstance(derivation, CollectiveTransfers)
    bundles, counts = derivation.bundled(most)
    assert counts.sum() == len(rows)
    assert bytes_by_link(trace, bundles) == pytest.approx(bytes_by_link(trace, rows), rel=1e-12)
    call = ["source", "target", "collective"]
    of_rows, of_bundles = (
        table.to_pandas().groupby(call).agg({"start_seconds": "min", "end_seconds": "max", "bytes": "sum"})
        for table in (rows, bundles)
    )
    assert (of_rows.index == of_bundles.index).all()
    assert of_bundles.to_numpy() == pytest.approx(of_rows.to_numpy(), rel=1e-12)
    if most == 10**6:
        assert (counts == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_part_that_a_refusal_names_fits(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the table of transfers, and for a file of events; from the start of the run, and from a moment within."""
    nodes = {"per_node": 4, "bandwidth": "100 GB/s", "latency": "2 us"}
    cluster = {"workers": 64, "bandwidth": "1 Gbit/s", "latency": "100 us"} | (
        {"nodes": nodes} if kind == "hierarchical" else {}
    )
    trace = simulate(scenario({"kind": "synchronous"}, kind, cluster=cluster, steps=20))
    rows = plain(simulate(trace.scenario))
    monkeypatch.setattr("distsim.trace_size.memory_bytes", lambda: len(rows) // 3 * 100)
    monkeypatch.setattr("distsim.trace.derived.LEAST_ROWS_BY_CALL", -1)
    with pytest.raises(InputError) as whole:
        _ = trace.transfers.source
    part = trace.transfers_between(*named(str(whole.value)))
    assert len(rows) / 9 < len(part) <= len(rows) // 3
    start = float(np.quantile(rows.start_seconds, 0.4))
    with pytest.raises(InputError, match="transfers between the two times") as within:
        trace.transfers_between(start, trace.total_seconds)
    assert len(rows) / 9 < len(trace.transfers_between(*named(str(within.value)))) <= len(rows) // 3
    monkeypatch.setattr("distsim.trace_size.memory_bytes", lambda: len(rows) * 1500)
    with pytest.raises(InputError, match=r'trace events = .*--start "0 s" --end') as events:
        trace.save(tmp_path / "run.json")
    trace.between(*named(str(events.value))).save(tmp_path / "run.json")
    assert 0 < len(Trace.load(tmp_path / "run.json").spans) < len(trace.spans)


def named(message: str) -> tuple[float, float]:
    """The two times in the cure."""
    found = re.search(r"between\(([-.e\d]+), ([-.e\d]+)\)", message)
    assert found is not None, message
    return float(found[1]), float(found[2])


DAMAGE: dict[str, dict[str, Any]] = {
    "other workers": {"transfers.arrivals": np.zeros((7, 1, 5))},
    "no times": {"transfers.arrivals": np.full((7, 1, 6), np.nan)},
    "before the start": {"transfers.arrivals": np.full((7, 1, 6), -1.0)},
    "another type": {"transfers.arrivals": np.zeros((7, 1, 6), np.int64)},
    "another shape": {"transfers.arrivals": np.zeros(6)},
    "no JSON": {"transfers.all_reduces": np.array("{")},
    "no facts": {"transfers.all_reduces": np.array("{}")},
    "servers": {"changed": {"communication": {"kind": "parameter_server"}}},
    "no collective": {"changed": {"communication": {"kind": "shuffle"}}},
    "less than no bytes": {"changed": {"sizes": [-1.0]}},
    "no cluster": {"changed": {"cluster": {}}},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: dict[str, Any]) -> None:
    trace = simulate(scenario({"kind": "synchronous"}, "ring"))
    trace.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as stored:
        arrays = dict(stored)
    facts = json.loads(str(arrays["transfers.all_reduces"])) | damage.get("changed", {})
    arrays["transfers.all_reduces"] = np.array(json.dumps(facts))
    np.savez(tmp_path / "damaged.npz", **arrays | {key: value for key, value in damage.items() if key != "changed"})
    with pytest.raises(InputError, match="is not a trace that distsim wrote"):
        Trace.load(tmp_path / "damaged.npz")


def test_files_of_rows_are_read_as_before(tmp_path: Path) -> None:
    trace = simulate(scenario({"kind": "synchronous"}, "ring"))
    columns = {f"{name}.{key}": column for name in TABLES for key, column in getattr(trace, name).columns().items()}
    np.savez(tmp_path / "old.npz", metadata=np.array(json.dumps(trace.metadata)), **columns)
    assert Trace.load(tmp_path / "old.npz") == trace
