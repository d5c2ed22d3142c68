"""Exact recurrences: runs whose times follow from a formula over arrays, all steps at once. One module per family."""

from __future__ import annotations

from distsim.engine.recurrence import ring, server
from distsim.errors import InputError
from distsim.policies import Backup, Rule, Synchronous
from distsim.scenario import Scenario
from distsim.trace import Trace


def cannot(scenario: Scenario) -> str | None:
    """What of `scenario` has no recurrence here; None where there is one."""
    policy = scenario.policy
    if not isinstance(policy, Synchronous) and not (isinstance(policy, Backup) and policy.cancel):
        late = " without cancel" if isinstance(policy, Backup) else ""
        return f"policy.kind = {policy.kind!r}{late}"
    if scenario.communication.kind == "ring":
        return None if scenario.cluster.nodes is None else "cluster.nodes"
    return server.cannot(scenario)


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Works `scenario` out. apply_seconds: the server's own work for each update. A user's own rule has no formula."""
    missing = "a rule of your own" if rule is not None else cannot(scenario)
    if missing is not None:
        raise InputError.of("engine", "recurrence", f"has no formula for {missing}", 'take engine = "auto"')
    if scenario.communication.kind == "ring":
        return ring.run(scenario)
    return server.run(scenario, apply_seconds)
