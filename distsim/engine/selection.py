"""Which engine works a scenario out: the fastest that can, or the one that was asked for."""

from __future__ import annotations

from typing import Literal, get_args

from distsim.engine import loop, recurrence, story
from distsim.errors import InputError
from distsim.policies import Rule
from distsim.scenario import Scenario
from distsim.trace import Trace

Engine = Literal["auto", "story", "loop", "recurrence"]


def fastest(scenario: Scenario, rule: Rule | None = None) -> Engine:
    """The fastest engine that serves `scenario`, with a rule of one's own or without.

    >>> from distsim.examples import example
    >>> fastest(example("synchronous_ring")), fastest(example("backup_server"))
    ('recurrence', 'loop')
    """
    if rule is None and recurrence.cannot(scenario) is None:
        return "recurrence"
    return "loop" if loop.cannot(scenario) is None else "story"


def run(engine: Engine, scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario` with `engine`; the trace's metadata say which it was. Raises InputError where it cannot."""
    match fastest(scenario, rule) if engine == "auto" else engine:
        case "story":
            return story.run(scenario, apply_seconds, rule)
        case "loop":
            return loop.run(scenario, apply_seconds, rule)
        case "recurrence":
            return recurrence.run(scenario, apply_seconds, rule)
    raise InputError.of("engine", engine, "is not an engine", f"take {' or '.join(get_args(Engine))}")
