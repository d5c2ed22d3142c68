"""Exact recurrences: formulas over arrays give the times of all steps of a run at once. One module per family.

peers       synchronous training and local SGD by all-reduce
ddp         distributed data parallel: buckets of gradients, all-reduced during backward
program     queues of computing and of exchanges: sharded and tensor parallel training, meshes
pipeline    stages that pass micro-batches on
server      servers that wait for all, or one server that cancels late steps
colocated   servers on workers' hosts that wait for all, where workers form a few groups
These modules use: `all_reduce_sequence` (the calls of a run, one after the other) with the kinds of one call,
`rings`, `max_plus_rounds` and `tree`; `sharing` of one link; and `rows`, the drawn times and the rows of the trace.
"""

from __future__ import annotations

from collections.abc import Callable

from distsim.engine.recurrence import colocated, ddp, peers, pipeline, program, server
from distsim.errors import InputError
from distsim.policies import Backup, Ddp, LocalSgd, Pipeline, Programmed, Rule, Synchronous
from distsim.scenario import Scenario
from distsim.trace import Trace

Reason = str  # the part of a scenario that has no recurrence
Family = tuple[Callable[[Scenario], Reason | None], Callable[[Scenario, float], Trace | Reason]]


def cannot(scenario: Scenario) -> Reason | None:
    """The part of `scenario` that has no recurrence here, or None."""
    family = _family(scenario)
    return _nothing_for(scenario) if family is None else family[0](scenario)


def run(scenario: Scenario, apply_seconds: float = 0.0, rule: Rule | None = None) -> Trace:
    """Simulates `scenario`. apply_seconds: the server's own work for each update. A user's own rule has no formula."""
    found = "a rule of your own" if rule is not None else attempt(scenario, apply_seconds)
    if isinstance(found, Reason):
        raise InputError.of("engine", "recurrence", f"has no formula for {found}", 'take engine = "auto"')
    return found


def attempt(scenario: Scenario, apply_seconds: float = 0.0) -> Trace | Reason:
    """The trace of `scenario`, or the part of it that has no recurrence here."""
    family = _family(scenario)
    if family is None:
        return _nothing_for(scenario)
    check, play = family
    missing = None if play is pipeline.attempt else check(scenario)  # pipelines compute all times to check them
    return play(scenario, apply_seconds) if missing is None else missing


def _nothing_for(scenario: Scenario) -> Reason:
    late = " without cancel" if isinstance(scenario.policy, Backup) else ""
    return f"policy.kind = {scenario.policy.kind!r}{late}"


def _family(scenario: Scenario) -> Family | None:
    """The family that serves scenarios like this, unless something else of the scenario has no formula there."""
    match scenario.policy:
        case Ddp():
            return peers.cannot, lambda found, _: ddp.run(found)
        case Programmed():
            return program.cannot, lambda found, _: program.run(found)
        case Pipeline():
            return pipeline.cannot, pipeline.attempt
        case Synchronous() if scenario.communication.colocated:
            return colocated.cannot, colocated.run
        case Synchronous() if scenario.servers:
            return server.cannot, server.run
        case Synchronous() | LocalSgd():
            return peers.cannot, peers.run
        case Backup(cancel=True):
            return server.cannot, server.run
    return None
