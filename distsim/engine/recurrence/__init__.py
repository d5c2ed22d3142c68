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

from collections.abc import Callable

from distsim.engine.recurrence import colocated, ddp, peers, pipeline, server
from distsim.errors import InputError
from distsim.policies import Backup, Ddp, LocalSgd, Pipeline, Rule, Synchronous
from distsim.scenario import Scenario
from distsim.trace import Trace

Family = tuple[Callable[[Scenario], str | None], Callable[[Scenario, float], Trace]]  # `cannot` and `run`


def cannot(scenario: Scenario) -> str | None:
    """The part of `scenario` that has no recurrence here, or None."""
    family = _family(scenario)
    if family is not None:
        return family[0](scenario)
    late = " without cancel" if isinstance(scenario.policy, Backup) else ""
    return f"policy.kind = {scenario.policy.kind!r}{late}"


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario`. apply_seconds: the server's own work for each update. A user's own rule has no formula."""
    missing, family = "a rule of your own" if rule is not None else cannot(scenario), _family(scenario)
    if missing is not None or family is None:
        raise InputError.of("engine", "recurrence", f"has no formula for {missing}", 'take engine = "auto"')
    return family[1](scenario, apply_seconds)


def _family(scenario: Scenario) -> Family | None:
    """The family that serves scenarios like this, unless something else of the scenario has no formula there."""
    match scenario.policy:
        case Ddp():
            return peers.cannot, lambda found, _: ddp.run(found)
        case Pipeline():
            return pipeline.cannot, lambda found, _: pipeline.run(found)
        case Synchronous() if scenario.communication.colocated:
            return colocated.cannot, colocated.run
        case Synchronous() if scenario.servers:
            return server.cannot, server.run
        case Synchronous() | LocalSgd():
            return peers.cannot, peers.run
        case Backup(cancel=True):
            return server.cannot, server.run
    return None
