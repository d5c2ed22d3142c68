"""The predicted half: a scenario in, the Trace of its simulated run out."""

from __future__ import annotations

from dataclasses import asdict, replace

from distsim.calibration import Calibration, calibrated
from distsim.engine import story
from distsim.scenario import Scenario
from distsim.trace import Trace


def simulate(scenario: Scenario, calibration: Calibration | None = None) -> Trace:
    """Simulates `scenario`; the same scenario gives a bit-identical Trace.

    calibration: links and overheads measured on a machine, which take the place of the scenario's.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> len(trace.updates), trace.producer
    (50, 'simulated')
    """
    if calibration is None:
        return story.run(scenario)
    exchange = calibration.of(scenario)
    trace = story.run(calibrated(scenario, exchange), exchange.apply_seconds)
    return replace(trace, metadata=trace.metadata | {"calibration": asdict(exchange)})
