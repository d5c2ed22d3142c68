"""Describes the emulated cluster of a run, from the "emulation" in its trace's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distsim.arrays import Floats
from distsim.runtime.emulation.shaping import FRAME_BYTES, SEGMENT_BYTES, Grain, ShapedLink, up_link
from distsim.units import show, write

if TYPE_CHECKING:
    from distsim.scenario import Scenario
    from distsim.trace import Trace

NOTABLE_SHARE = 0.05  # of a run


def predicted_on(scenario: Scenario, emulation: dict[str, Any]) -> Scenario:
    """The scenario for a prediction of this run: with the measured latency, where the scenario's was not imposed."""
    if not latency_is_measured(emulation):
        return scenario
    return scenario.replacing({"cluster.latency": write(emulation["measured_latency_seconds"], "second")})


def latency_is_measured(emulation: dict[str, Any]) -> bool:
    """Whether a prediction takes the measured latency, since the scenario's could not be imposed."""
    return emulation["latency_seconds"] is None and "measured_latency_seconds" in emulation


def describe(emulation: dict[str, Any]) -> str:
    """A sentence for the report: which links were imposed, and which latency, if any.

    >>> host = {"ranks": [0], "up_bytes_per_second": 125e6, "down_bytes_per_second": 25e6}
    >>> describe({"hosts": [host], "latency_seconds": 0.001})
    "the scenario's links emulated on this machine: 200 Mbit/s to 1 Gbit/s of payload, latency 1 ms"
    >>> describe({"hosts": [host], "latency_seconds": 0.0, "measured_latency_seconds": 4e-5}).split("; ")[1]
    'a message without content took 40 us'
    """
    rates = [host[f"{direction}_bytes_per_second"] for host in emulation["hosts"] for direction in ("up", "down")]
    slowest, fastest = (show(rate, "byte/second") for rate in (min(rates), max(rates)))
    bandwidth = slowest if slowest == fastest else f"{slowest} to {fastest}"
    return f"the scenario's links emulated on this machine: {bandwidth} of payload, {_latency(emulation)}"


def earlier(predicted: Trace, emulation: dict[str, Any]) -> list[str]:
    """A sentence if the messages of a rank are so short that many of them arrive early on the emulated links.

    predicted: the same run, simulated. See `shaping` for why messages are early.
    """
    source, num_bytes = predicted.transfers.source, predicted.transfers.bytes
    early = np.zeros(len(source))
    for host in emulation["hosts"]:
        sent = np.isin(source, host["ranks"])
        early[sent] = _early_seconds(num_bytes[sent], up_link(host["up_bytes_per_second"], Grain(**emulation["grain"])))
    of_each = np.bincount(source, early, minlength=1)
    seconds = float(of_each.max())
    if seconds <= NOTABLE_SHARE * predicted.total_seconds:
        return []
    share = seconds / predicted.total_seconds
    return [
        f"a message that finds its emulated link idle arrives up to {show(float(early.max()), 'second')} early: those "
        f"that one rank sends up to {show(seconds, 'second')} in all, {share:.0%} of the run, which is so much shorter "
        "if it waits for each of them"
    ]


def _early_seconds(num_bytes: Floats, link: ShapedLink) -> Floats:
    """By how much messages of so many bytes each arrive early where they find this up-link idle, at most.

    >>> from distsim.runtime.emulation.shaping import COARSE, FINE
    >>> sizes = np.array([12.5e3, 33e3, 1e8])  # 100 us, 264 us and 0.8 s
    >>> [round(1e6 * float(seconds)) for seconds in _early_seconds(sizes, up_link(125e6, COARSE))]
    [100, 260, 497]
    >>> [round(1e6 * float(seconds)) for seconds in _early_seconds(sizes, up_link(125e6, FINE))]
    [100, 187, 254]
    """
    wire_bytes = num_bytes * FRAME_BYTES / SEGMENT_BYTES
    at_once = np.minimum(wire_bytes, link.packet_bytes + link.peak_bucket_bytes)
    faster = (1.0 - link.wire_bytes_per_second / link.peak_bytes_per_second) * (wire_bytes - at_once)
    return np.minimum(at_once + faster, link.packet_bytes + link.bucket_bytes) / link.wire_bytes_per_second


def _latency(emulation: dict[str, Any]) -> str:
    imposed, measured = emulation["latency_seconds"], emulation.get("measured_latency_seconds")
    took = "" if measured is None else f"; a message without content took {show(measured, 'second')}"
    if imposed is None:
        return f"latency not imposed, since this kernel has no netem{took}"
    return f"latency {show(imposed, 'second')}{took}"
