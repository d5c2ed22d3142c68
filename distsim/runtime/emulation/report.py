"""What a reader of a run on an emulated cluster should know, from the "emulation" in its trace's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distsim.units import show, write

if TYPE_CHECKING:
    from distsim.scenario import Scenario


def predicted_on(scenario: Scenario, emulation: dict[str, Any]) -> Scenario:
    """The scenario that a prediction of this run takes: its own links, but the measured latency if none was imposed."""
    if emulation["latency_seconds"] is not None or "measured_latency_seconds" not in emulation:
        return scenario
    return scenario.replacing({"cluster.latency": write(emulation["measured_latency_seconds"], "second")})


def describe(emulation: dict[str, Any]) -> str:
    """One sentence for the report.

    >>> host = {"ranks": [0], "up_bytes_per_second": 125e6, "down_bytes_per_second": 25e6}
    >>> describe({"hosts": [host], "latency_seconds": 0.001})
    "the scenario's links emulated on this machine: 200 Mbit/s to 1 Gbit/s of payload, latency 1 ms"
    """
    rates = [host[f"{way}_bytes_per_second"] for host in emulation["hosts"] for way in ("up", "down")]
    slowest, fastest = (show(rate, "byte/second") for rate in (min(rates), max(rates)))
    bandwidth = slowest if slowest == fastest else f"{slowest} to {fastest}"
    return f"the scenario's links emulated on this machine: {bandwidth} of payload, {_latency(emulation)}"


def _latency(emulation: dict[str, Any]) -> str:
    if emulation["latency_seconds"] is not None:
        return f"latency {show(emulation['latency_seconds'], 'second')}"
    if "measured_latency_seconds" not in emulation:
        return "latency not imposed"
    measured = show(emulation["measured_latency_seconds"], "second")
    return f"latency not imposed, {measured} measured"
