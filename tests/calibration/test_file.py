"""The calibration file: it comes back as it was, earlier ones are read, and a damaged one gets one message."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.calibration import Calibration, Exchange, Imposed, fitted
from distsim.cores import Cores
from distsim.errors import InputError
from distsim.examples import example
from distsim.simulation import simulate

EXCHANGE = Exchange("ring", 4, 1.1e9, 1e-4, 0.0, ((1e6, 0.1), (4e6, 0.3)))


def whole() -> Calibration:
    samples = [("all_reduce", None, n, size, np.full(3, 1e-4 * n + size / 1e9)) for n in (2, 4) for size in (1e4, 1e6)]
    shared = replace(EXCHANGE, cores=Cores(capacity=1.8, step_seconds=0.02, message_seconds=1e-5, byte_seconds=1e-9))
    turns = [("turn", 2, 1e4, np.full(3, 1e-2))]
    return Calibration((EXCHANGE, shared), fitted(samples, cores=2, work=samples, corrections=turns))


def test_a_file_comes_back(tmp_path: Path) -> None:
    whole().save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == whole()


def on_emulated_links() -> Calibration:
    links = Imposed(bandwidth_bytes_per_second=125e6, latency_seconds=5e-5)
    samples = [("all_reduce", None, 4, size, np.full(3, 1e-4 + size / 1e8)) for size in (1e4, 1e6)]
    return Calibration((), fitted(samples, cores=2, emulated=True, imposed=links))


def test_a_file_keeps_the_links_that_were_imposed(tmp_path: Path) -> None:
    on_emulated_links().save(tmp_path / "c.json")
    found = Calibration.load(tmp_path / "c.json")
    assert found == on_emulated_links()
    assert found.machine is not None
    assert found.machine.imposed == Imposed(bandwidth_bytes_per_second=125e6, latency_seconds=5e-5)
    told = found.describe(example("synchronous_ring"))
    assert told.endswith("; the calibration was made on emulated links of 1 Gbit/s and 50 us")


def test_a_file_that_tells_no_work_of_cores_is_read(tmp_path: Path) -> None:
    """As written before it was measured."""
    table = whole().as_dict()
    del table["machine"]["work"]
    for exchange in table["exchanges"]:
        del exchange["cores"]
    (tmp_path / "c.json").write_text(json.dumps(table))
    found = Calibration.load(tmp_path / "c.json")
    assert found.machine is not None
    assert found.machine.work == ()
    assert [exchange.cores for exchange in found.exchanges] == [None, None]


def test_a_file_that_does_not_tell_the_imposed_links_is_read(tmp_path: Path) -> None:
    """As written before they were kept."""
    table = on_emulated_links().as_dict()
    del table["machine"]["imposed"]
    (tmp_path / "c.json").write_text(json.dumps(table))
    found = Calibration.load(tmp_path / "c.json")
    assert found.machine is not None
    assert (found.machine.emulated, found.machine.imposed) == (True, None)
    assert found.describe(example("synchronous_ring")).endswith("; the calibration was made on emulated links")


def test_a_latency_that_the_kernel_could_not_impose_is_told() -> None:
    assert str(Imposed(bandwidth_bytes_per_second=5e6, latency_seconds=None)) == "40 Mbit/s and no latency imposed"


def test_a_file_of_the_first_version_is_read(tmp_path: Path) -> None:
    row = {
        "kind": "ring", "workers": 4, "bandwidth_bytes_per_second": 1.1e9, "latency_seconds": 1e-4,
        "apply_seconds": 0.0, "points": [[1e6, 0.1], [4e6, 0.3]],
    }  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps({"distsim_calibration": 1, "exchanges": [row]}))
    assert Calibration.load(tmp_path / "c.json") == Calibration((EXCHANGE,))


def measured_at(size: float, latency: float) -> Exchange:
    return replace(EXCHANGE, latency_seconds=latency, points=((size / 4, 1e-3), (size, 2e-3)))


@pytest.mark.parametrize(("gradient", "latency"), [("10 kB", 1e-4), ("300 kB", 1e-4), ("400 kB", 2e-4), ("1 GB", 3e-4)])
@pytest.mark.parametrize("order", [1, -1])
def test_of_several_exchanges_the_one_nearest_in_size_is_taken(gradient: str, latency: float, order: int) -> None:
    known = [measured_at(1e5, 1e-4), measured_at(1e6, 2e-4), measured_at(1e7, 3e-4), replace(EXCHANGE, points=())]
    ring = example("synchronous_ring").replacing({"workload.gradient": gradient})
    assert Calibration(tuple(known[::order])).of(ring).latency_seconds == latency


def test_of_several_exchanges_of_one_size_none_is_taken() -> None:
    ring, one, other = example("synchronous_ring"), measured_at(1e6, 1e-4), measured_at(1e6, 2e-4)
    assert Calibration((one, one)).of(ring) == one
    with pytest.raises(InputError, match=r"ring with 4 workers = '2 exchanges': are equally near .*Cure: leave one"):
        Calibration((one, other)).of(ring)


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    table = whole().as_dict()
    change(table)
    return json.dumps(table).encode()


def line(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = table["machine"]["fits"][0]["line"]
    return found


DAMAGED: dict[str, bytes] = {
    "cut off": json.dumps(whole().as_dict()).encode()[:-20],
    "other version": changed(lambda table: table.update(distsim_calibration=3)),
    "unknown key": changed(lambda table: table.update(machines=1)),
    "text for a number": changed(lambda table: line(table).update(fixed_seconds="1e-4")),
    "negative": changed(lambda table: line(table).update(fixed_seconds=-1e-4)),
    "not a number": changed(lambda table: line(table).update(unit_seconds=float("nan"))),
    "infinite": changed(lambda table: table["exchanges"][0].update(bandwidth_bytes_per_second=float("inf"))),
    "no bandwidth": changed(lambda table: table["exchanges"][0].update(bandwidth_bytes_per_second=0.0)),
    "a key less": changed(lambda table: table["exchanges"][0].pop("latency_seconds")),
    "a key more": changed(lambda table: table["exchanges"][0].update(latency=1.0)),
    "unknown family": changed(lambda table: table["machine"]["fits"][0].update(family="gossip")),
    "no workers": changed(lambda table: table["machine"]["fits"][0].update(workers=[])),
    "no fits": changed(lambda table: table["machine"].update(fits=[])),
    "imposed on its own links": changed(
        lambda table: table["machine"].update(imposed={"bandwidth_bytes_per_second": 1e9, "latency_seconds": 0.0})
    ),
    "imposed half": changed(
        lambda table: table["machine"].update(emulated=True, imposed={"bandwidth_bytes_per_second": 1e9})
    ),
    "no cores": changed(lambda table: table["machine"].update(cores=0)),
    "true for a number": changed(lambda table: table["machine"].update(cores=True)),
    "nested": b"[" * 100_000,
    "not text": bytes(range(256)),
    "holds nothing": json.dumps({"distsim_calibration": 1, "exchanges": []}).encode(),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_gets_one_message(tmp_path: Path, damage: str) -> None:
    (tmp_path / "c.json").write_bytes(DAMAGED[damage])
    with pytest.raises(InputError, match=r"c\.json'.*is not a calibration that distsim wrote .*Cure:") as caught:
        Calibration.load(tmp_path / "c.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


HOSTILE = [None, True, -1, 0, 1, 10**400, -0.5, 1e-320, 1e300, float("nan"), float("inf"), "", "ring", [], {}, [1]]


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *places(value[key])]]


@given(data=st.data())
def test_whatever_is_damaged_is_refused_or_used(
    tmp_path_factory: pytest.TempPathFactory, or_input_error: Any, data: st.DataObject
) -> None:
    table = json.loads(json.dumps(whole().as_dict()))
    container, key = data.draw(st.sampled_from(places(table["machine"])))
    container[key] = data.draw(st.sampled_from(HOSTILE))
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_text(json.dumps(table))
    with or_input_error():
        calibration = Calibration.load(path)
        scenario = example("synchronous_ring").replacing({"steps": 2, "cluster.workers": 3})
        assert np.isfinite(simulate(scenario, calibration).total_seconds)
        assert calibration.of(scenario).describe()
