"""Exact recurrences: formulas over arrays give the times of all steps of a run at once. One module per family.

peers       synchronous training and local SGD by all-reduce
ddp         distributed data parallel: buckets of gradients, all-reduced during backward
pipeline    stages that pass micro-batches on
server      servers that wait for all, or one server that cancels late steps
colocated   servers on workers' hosts that wait for all, where workers form a few groups
These modules use: `all_reduce_sequence` (the calls of a run, one after the other) with the kinds of one call,
`max_plus_rounds` (such as the ring) and `tree`; `sharing` of one link; and `rows`, the drawn times and the rows of the
trace.
"""

from __future__ import annotations

from distsim.engine.recurrence import colocated, ddp, peers, pipeline, server
from distsim.errors import InputError
from distsim.policies import Backup, Ddp, LocalSgd, Pipeline, Rule, Synchronous
from distsim.scenario import Scenario
from distsim.trace import Trace


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario` that has no recurrence here, or None."""
    policy = scenario.policy
    if isinstance(policy, LocalSgd | Ddp) or (isinstance(policy, Synchronous) and not scenario.servers):
        return peers.cannot(scenario)
    if isinstance(policy, Pipeline):
        return pipeline.cannot(scenario)
    if isinstance(policy, Synchronous) and scenario.communication.colocated:
        return colocated.cannot(scenario)
    if isinstance(policy, Synchronous) or (isinstance(policy, Backup) and policy.cancel):
        return server.cannot(scenario)
    late = " without cancel" if isinstance(policy, Backup) else ""
    return f"policy.kind = {policy.kind!r}{late}"


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario`. apply_seconds: the server's own work for each update. A user's own rule has no formula."""
    missing = "a rule of your own" if rule is not None else cannot(scenario)
    if missing is not None:
        raise InputError.of("engine", "recurrence", f"has no formula for {missing}", 'take engine = "auto"')
    policy = scenario.policy
    if isinstance(policy, Ddp):
        return ddp.run(scenario)
    if isinstance(policy, Pipeline):
        return pipeline.run(scenario)
    if isinstance(policy, LocalSgd) or not scenario.servers:
        return peers.run(scenario, apply_seconds)
    if scenario.communication.colocated:
        return colocated.run(scenario, apply_seconds)
    return server.run(scenario, apply_seconds)
