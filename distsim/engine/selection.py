"""Chooses the engine for a scenario: the fastest engine that serves the scenario, or the requested engine."""

from __future__ import annotations

from typing import Literal, get_args

from distsim.collectives import Schedule
from distsim.cores import Cores
from distsim.engine import loop, recurrence, story
from distsim.errors import InputError
from distsim.policies import Rule
from distsim.scenario import Scenario
from distsim.trace import Trace

Engine = Literal["auto", "story", "loop", "recurrence"]


def fastest(scenario: Scenario, rule: Rule | None = None) -> Engine:
    """The fastest engine that serves `scenario`, with or without a user's own rule.

    >>> from distsim.examples import example
    >>> fastest(example("synchronous_ring")), fastest(example("backup_server"))
    ('recurrence', 'loop')
    """
    if rule is None and recurrence.cannot(scenario) is None:
        return "recurrence"
    return _without_recurrence(scenario, rule)


def _without_recurrence(scenario: Scenario, rule: Rule | None) -> Engine:
    return "loop" if loop.cannot(scenario, own_rule=rule is not None) is None else "story"


def run(
    engine: Engine, scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None,
    cores: Cores | None = None, schedule: Schedule | None = None,
) -> Trace:  # fmt: skip
    """Simulates `scenario` with `engine`; the trace's metadata name the engine. Raises InputError where it cannot."""
    alone = {"cores that ranks share": cores, "a schedule of your own": schedule}
    only_story = next((what for what, given in alone.items() if given is not None), None)
    if only_story is not None and engine in ("loop", "recurrence"):
        raise InputError.of("engine", engine, f"has no formula for {only_story}", 'take engine = "auto"')
    if engine == "auto":
        if only_story is None and rule is None:
            found = recurrence.attempt(scenario, apply_seconds)
            if isinstance(found, Trace):
                return found
        engine = _without_recurrence(scenario, rule) if only_story is None else "story"
    match engine:
        case "story":
            return story.run(scenario, apply_seconds, rule, cores, schedule)
        case "loop":
            return loop.run(scenario, apply_seconds, rule)
        case "recurrence":
            return recurrence.run(scenario, apply_seconds, rule)
    raise InputError.of("engine", engine, "is not an engine", f"take {' or '.join(get_args(Engine))}")
