"""The measured half: a scenario in, the Trace of its real run out, with a process per worker and server."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import zip_longest

import numpy as np

from distsim.errors import InputError, NotAvailableYetError
from distsim.policies import FlexRR, Pipeline
from distsim.policies.own_rule import located
from distsim.runtime.launch import Launch, Progress, launched
from distsim.runtime.limits import check_peers
from distsim.runtime.merge import merge
from distsim.runtime.roles import among_peers, roles
from distsim.scenario import Scenario
from distsim.simulation import check_decides
from distsim.trace import Trace

RANK_ENTRY = ("-m", "distsim.runtime.rank")
# The estimate of a deadline: far above what a run takes, far below what a person waits for one that hangs.
START_SECONDS, START_SECONDS_PER_RANK = 30.0, 5.0
COMPUTE_FACTOR = 3.0
STEP_SECONDS, STEP_SECONDS_PER_RANK = 0.1, 0.02
SLOW_BYTES_PER_SECOND = 50e6
MODEL_SECONDS_PER_SAMPLE = 0.02  # forward and backward, of one worker after the other


def measure(
    scenario: Scenario,
    *,
    rule: str | None = None,
    deadline_seconds: float | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Runs `scenario` for real on this machine.

    The machine's own links carry the bytes; the scenario's seeded compute times are slept, after real forward and
    backward where the workload has a model. rule: "my_rule.py:MyRule", a rule of your own in place of the policy's,
    which is loaded by the server alone. deadline_seconds: from the launch (default: estimated). progress: called with
    (steps done, steps in all) now and then.
    Raises RunError, which names the rank and where it stood, and InputError where torch is missing or the rule
    decides something impossible.
    """
    (trace,) = measure_all([scenario], rules=[rule], deadline_seconds=deadline_seconds, progress=progress)
    return trace


def measure_all(
    scenarios: Sequence[Scenario],
    *,
    rules: Sequence[str | None] = (),
    deadline_seconds: float | None = None,
    progress: Progress | None = None,
    entry: Sequence[str] = RANK_ENTRY,
) -> list[Trace]:
    """Runs scenarios with the same number of ranks one after the other in one launch, which costs one start.

    Arguments and errors are those of `measure`, for all scenarios together. rules: one for each of the first
    scenarios. entry: what torchrun starts as each rank.
    """
    _check(scenarios, deadline_seconds)
    own = [located(rule) if rule else None for rule in rules]
    for scenario, rule in zip(scenarios, rules, strict=False):
        if rule:
            check_decides(scenario)
    if not scenarios:
        return []
    deadline = estimated_seconds(scenarios) if deadline_seconds is None else deadline_seconds
    launch = Launch(
        what=f"measure {scenarios[-1].name!r}",
        roles=roles(scenarios[0]),
        entry=entry,
        job={
            "scenarios": [scenario.table() for scenario in scenarios],
            "rules": own + [None] * (len(scenarios) - len(own)),
            "deadline_seconds": deadline,
        },
        deadline_seconds=deadline,
        steps=sum(scenario.steps for scenario in scenarios),
        progress=progress,
    )
    with launched(launch) as folder:
        traces = [merge(folder, number, scenario) for number, scenario in enumerate(scenarios)]
    return [
        trace if rule is None else replace(trace, metadata=trace.metadata | {"rule": rule})
        for trace, rule in zip_longest(traces, rules)
    ]


def estimated_seconds(scenarios: Sequence[Scenario]) -> float:
    """A deadline in seconds that only a run that hangs should reach."""
    return START_SECONDS + START_SECONDS_PER_RANK * len(roles(scenarios[0])) + sum(map(_run_seconds, scenarios))


def _run_seconds(scenario: Scenario) -> float:
    workers = scenario.cluster.workers
    times = scenario.compute_times()
    drawn = np.stack([times.first(worker, scenario.steps)[: scenario.steps] for worker in range(workers)])
    if isinstance(scenario.policy, Pipeline):  # one stage after the other, if there is a single micro-batch
        computed, per_step = drawn.sum(), scenario.workload.activation_bytes or 0.0
    else:
        computed, per_step = drawn.max(axis=0).sum(), scenario.gradient_bytes
    carried = 2.0 * workers * per_step / SLOW_BYTES_PER_SECOND
    exchange = STEP_SECONDS + STEP_SECONDS_PER_RANK * scenario.ranks + carried
    model = MODEL_SECONDS_PER_SAMPLE * workers * scenario.workload.batch if scenario.workload.model else 0.0
    return float(COMPUTE_FACTOR * computed + scenario.steps * (exchange + model))


REAL_POLICIES = ("synchronous", "backup", "asynchronous", "stale_synchronous", "flexrr")


def _check_available(scenario: Scenario) -> None:
    """Real runs of some things that can be simulated are still to come."""
    if among_peers(scenario):
        check_peers(scenario)
        return
    communication = scenario.communication
    for asked, value, fine, cure in (
        ("policy.kind", scenario.policy.kind, scenario.policy.kind in REAL_POLICIES, " or ".join(REAL_POLICIES)),
        (
            "communication.implementation",
            communication.implementation,
            communication.implementation == "backend",
            "backend",
        ),
        ("cluster.nodes", scenario.cluster.nodes, scenario.cluster.nodes is None, "none"),
        ("failures", scenario.failures, scenario.failures is None, "none"),
        (
            "workload.model",
            scenario.workload.model,
            scenario.workload.model is None or not isinstance(scenario.policy, FlexRR),
            "none with FlexRR",
        ),
    ):
        if not fine:
            raise NotAvailableYetError.of(asked, value, "cannot be run for real yet", f"take {cure}, or simulate it")


def _check(scenarios: Sequence[Scenario], deadline_seconds: float | None) -> None:
    check_machine(deadline_seconds)
    for scenario in scenarios:
        _check_available(scenario)
    ranks = [len(roles(scenario)) for scenario in scenarios]
    if len(set(ranks)) > 1:
        raise InputError.of("ranks of the scenarios", ranks, "must be equal in one launch", "measure them one by one")


def check_machine(deadline_seconds: float | None) -> None:
    """Raises InputError where nothing can be really run here, or not until such a deadline."""
    if sys.platform == "win32":
        raise InputError.of("real run on", sys.platform, "needs Linux or macOS", "use the Windows Subsystem for Linux")
    if find_spec("torch") is None:
        raise InputError("a real run needs torch, which is not installed. Cure: pip install 'distsim-course[labs]'")
    if deadline_seconds is not None and not (deadline_seconds > 0 and math.isfinite(deadline_seconds)):
        raise InputError.of("deadline_seconds", deadline_seconds, "must be a number above 0", "write 60")
