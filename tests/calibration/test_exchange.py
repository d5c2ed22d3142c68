"""Calibration: what is fitted from exchanges of known links is those links."""

from __future__ import annotations

from pathlib import Path

import pytest

from distsim.calibration import Calibration, Exchange, fit, probes
from distsim.errors import InputError
from distsim.examples import NAMES, example
from distsim.simulation import simulate


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("bandwidth", "latency"), [("3 GB/s", "200 us"), ("1 Gbit/s", "0 s")])
def test_the_links_of_a_simulated_machine_are_found_again(name: str, bandwidth: str, latency: str) -> None:
    machine = example(name).replacing({"cluster.bandwidth": bandwidth, "cluster.latency": latency})
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


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"exchanges": [{"kind": "ring"}]}'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(InputError, match="is not a calibration that distsim wrote"):
        Calibration.load(tmp_path / "c.json")
    with pytest.raises(InputError, match="cannot be read"):
        Calibration.load(tmp_path / "absent.json")
