"""The predicted half: a scenario in, the Trace of its simulated run out."""

from __future__ import annotations

from distsim.engine import story
from distsim.scenario import Scenario
from distsim.trace import Trace


def simulate(scenario: Scenario) -> Trace:
    """Simulates `scenario`; the same scenario gives a bit-identical Trace.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> len(trace.updates), trace.producer
    (50, 'simulated')
    """
    return story.run(scenario)
