"""Calibration: what is fitted from exchanges of known links is those links."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.calibration import WARM_UP_STEPS, Calibration, Exchange, exchange_seconds, fit, probes
from distsim.errors import InputError
from distsim.examples import NAMES, example
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, TraceBuilder

LINKS = [("3 GB/s", "200 us"), ("1 Gbit/s", "0 s")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("bandwidth", "latency"), LINKS)
def test_the_links_of_a_simulated_machine_are_found_again(name: str, bandwidth: str, latency: str) -> None:
    check_found(example(name).replacing({"cluster.bandwidth": bandwidth, "cluster.latency": latency}))


@pytest.mark.parametrize("colocated", [False, True])
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize(("bandwidth", "latency"), LINKS)
def test_the_links_to_several_servers_are_found_again(
    servers: int, colocated: bool, bandwidth: str, latency: str
) -> None:
    changes = {"cluster.bandwidth": bandwidth, "cluster.latency": latency}
    several = {"communication.servers": servers, "communication.colocated": colocated}
    check_found(example("backup_server").replacing(changes | several))


def check_found(machine: Scenario) -> None:
    exchange = fit([simulate(probe) for probe in probes(machine)])
    assert exchange.bandwidth_bytes_per_second == pytest.approx(machine.cluster.bandwidth_bytes_per_second, rel=1e-6)
    assert exchange.latency_seconds == pytest.approx(machine.cluster.latency_seconds, abs=1e-9)


def test_the_servers_own_work_is_told_from_its_links() -> None:
    machine = example("backup_server")
    known = Calibration((Exchange("parameter_server", 5, 1e9, 1e-3, 4e-3, ()),))
    exchange = fit([simulate(probe, known) for probe in probes(machine)])
    assert exchange.apply_seconds == pytest.approx(4e-3)
    assert exchange.bandwidth_bytes_per_second == pytest.approx(1e9, rel=1e-6)
    assert exchange.latency_seconds == pytest.approx(1e-3, rel=1e-6)


def test_the_larger_size_decides_where_noise_hides_the_slope() -> None:
    """A small message that took longer than a large one leaves no slope: all is bandwidth then."""
    machine = example("synchronous_ring")
    small, large = probes(machine)
    slow_small = small.replacing({"cluster.latency": "20 ms"})
    exchange = fit([simulate(slow_small), simulate(large)])
    assert exchange.latency_seconds == 0.0
    taken = simulate(large).spans
    predicted = simulate(
        large.replacing({"cluster.bandwidth": f"{exchange.bandwidth_bytes_per_second} B/s", "cluster.latency": "0 s"})
    )
    assert predicted.total_seconds == pytest.approx(taken.end_seconds.max(), rel=1e-6)


def test_an_exchange_ends_when_the_workers_have_the_result_whatever_the_server_still_does() -> None:
    builder = TraceBuilder()
    for step in range(WARM_UP_STEPS + 2):
        begun = 10.0 * step
        for worker in range(2):
            builder.span(worker, SpanKind.COMPUTE, step, begun, begun + 1.0 + worker)
            builder.span(worker, SpanKind.RECEIVE, step, begun + 3.0, begun + 4.0 + worker)
        builder.span(2, SpanKind.RECEIVE, step, begun + 2.0, begun + 9.0)  # from a late worker, as its clock tells
        builder.span(2, SpanKind.APPLY, step, begun + 2.0, begun + 2.5)
    changes = {"cluster.workers": 2, "steps": WARM_UP_STEPS + 2}
    trace = builder.build(2, 1, "measured", scenario=example("backup_server").replacing(changes).table())
    assert exchange_seconds(trace).tolist() == [5.0 - 2.0 - 0.5] * 2


def test_probes_exchange_at_the_same_number_of_workers_without_backups() -> None:
    for name in NAMES:
        for probe in probes(example(name)):
            assert probe.cluster.workers == example(name).cluster.workers
            assert probe.communication.kind == example(name).communication.kind
            assert probe.policy.kind == "synchronous"


def test_a_file_comes_back(tmp_path: Path) -> None:
    calibration = Calibration((Exchange("ring", 4, 1.1e9, 1e-4, 0.0, ((1e6, 0.1), (4e6, 0.3))),))
    calibration.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == calibration


GOOD: dict[str, Any] = {
    "distsim_calibration": 1,
    "exchanges": [
        {
            "kind": "ring",
            "workers": 4,
            "bandwidth_bytes_per_second": 1.1e9,
            "latency_seconds": 1e-4,
            "apply_seconds": 0,
            "points": [[1e6, 0.1], [4e6, 0.3]],
        }
    ],
}
ABSENT = object()
DAMAGED: list[tuple[str, Any, str]] = [
    ("bandwidth_bytes_per_second", -1.0, "exchanges.0.bandwidth_bytes_per_second = -1.0 must be at least 0.001"),
    ("bandwidth_bytes_per_second", 0, "bandwidth_bytes_per_second = 0 must be at least 0.001"),
    ("bandwidth_bytes_per_second", 1e300, "bandwidth_bytes_per_second = 1e+300 must be at most 1e+18"),
    ("bandwidth_bytes_per_second", math.nan, "bandwidth_bytes_per_second = nan must be a finite number"),
    ("bandwidth_bytes_per_second", "1 GB/s", "bandwidth_bytes_per_second = '1 GB/s' must be a number"),
    ("bandwidth_bytes_per_second", ABSENT, "exchanges.0.bandwidth_bytes_per_second is missing"),
    ("latency_seconds", -1e-6, "latency_seconds = -1e-06 must be at least 0.0"),
    ("latency_seconds", math.inf, "latency_seconds = inf must be a finite number"),
    ("apply_seconds", None, "apply_seconds = None must be a number"),
    ("apply_seconds", True, "apply_seconds = True must be a number"),
    ("workers", 2.5, "workers = 2.5 must be a whole number"),
    ("workers", 0, "workers = 0 must be at least 1"),
    ("kind", "star", "kind = 'star' must be 'ring', 'tree'"),
    ("kind", ["ring"], "kind = ['ring'] must be 'ring', 'tree'"),
    ("points", [[1e6]], "points.0.1 is missing"),
    ("points", [[1e6, "0.1"]], "points.0.1 = '0.1' must be a number"),
    ("points", {"1e6": 0.1}, "points = {'1e6': 0.1} must be a list"),
    ("bandwith", 1e9, "bandwith = 1000000000.0 unexpected"),
]


@pytest.mark.parametrize(("key", "value", "message"), DAMAGED)
def test_a_value_that_no_measurement_gives_is_named(tmp_path: Path, key: str, value: Any, message: str) -> None:
    document = copy.deepcopy(GOOD)
    document["exchanges"][0][key] = value
    if value is ABSENT:
        del document["exchanges"][0][key]
    (tmp_path / "c.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="Cure: name a file that distsim calibrate wrote") as caught:
        Calibration.load(tmp_path / "c.json")
    assert "c.json" in str(caught.value)
    assert message in str(caught.value)


HOSTILE = [
    None, True, -1, 0, 1, 4, 10**400, -0.5, 0.5, 1e-320, 1e300, math.nan, math.inf, "", "ring", [], {}, [1], [[1, 2]],
]  # fmt: skip


@given(data=st.data())
def test_a_damaged_calibration_is_refused_or_used(
    tmp_path_factory: pytest.TempPathFactory, or_input_error: Any, data: st.DataObject
) -> None:
    """Each value in its turn, or any byte, becomes another."""
    document = copy.deepcopy(GOOD)
    inner = data.draw(st.sampled_from([document, *document["exchanges"], document["exchanges"][0]["points"]]))
    key = data.draw(st.sampled_from(list(inner) if isinstance(inner, dict) else list(range(len(inner)))))
    inner[key] = data.draw(st.sampled_from(HOSTILE))
    content = bytearray(json.dumps(document).encode())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(content)
    with or_input_error():
        calibration = Calibration.load(path)
        scenario = example("synchronous_ring").replacing({"steps": 2})
        assert np.isfinite(simulate(scenario, calibration).total_seconds)
        assert calibration.of(scenario).describe()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"exchanges": [{"kind": "ring"}]}'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(InputError, match="is not a calibration that distsim wrote"):
        Calibration.load(tmp_path / "c.json")
    with pytest.raises(InputError, match="cannot be read"):
        Calibration.load(tmp_path / "absent.json")
