"""The measured half: a scenario in, the Trace of its real run out, with a process per worker and server."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from distsim.errors import InputError, NotAvailableYetError
from distsim.runtime.emulation import order
from distsim.runtime.emulation.plan import Plan
from distsim.runtime.launch import Launch, Progress, launched
from distsim.runtime.merge import merge
from distsim.scenario import Scenario
from distsim.trace import Trace

RANK_ENTRY = ("-m", "distsim.runtime.rank")
# The estimate of a deadline: far above what a run takes, far below what a person waits for one that hangs.
START_SECONDS, START_SECONDS_PER_RANK = 30.0, 5.0
COMPUTE_FACTOR = 3.0
STEP_SECONDS, STEP_SECONDS_PER_RANK = 0.1, 0.02
SLOW_BYTES_PER_SECOND = 50e6
EMULATION_FACTOR = 3.0  # how much slower than their shapers' rate links may become on a machine that is busy


def measure(
    scenario: Scenario,
    *,
    emulate: bool = False,
    deadline_seconds: float | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Runs `scenario` for real on this machine.

    The scenario's seeded compute times are slept. emulate: whether the scenario's links are imposed; if not, the
    machine's own links carry the bytes. What was imposed stands in the trace's metadata under "emulation".
    deadline_seconds: from the launch (default: estimated). progress: called with (steps done, steps in all) now and
    then. Raises RunError, which names the rank and where it stood, and InputError where torch, or the right to emulate
    links, is missing.
    """
    (trace,) = measure_all([scenario], emulate=emulate, deadline_seconds=deadline_seconds, progress=progress)
    return trace


def measure_all(
    scenarios: Sequence[Scenario],
    *,
    emulate: bool = False,
    deadline_seconds: float | None = None,
    progress: Progress | None = None,
    entry: Sequence[str] = RANK_ENTRY,
) -> list[Trace]:
    """Runs scenarios with the same number of ranks one after the other in one launch, which costs one start.

    Arguments and errors are those of `measure`, for all scenarios together. entry: what torchrun starts as
    each rank.
    """
    _check(scenarios, deadline_seconds)
    if not scenarios:
        return []
    network = _network(scenarios) if emulate else None
    deadline = estimated_seconds(scenarios, network) if deadline_seconds is None else deadline_seconds
    launch = Launch(
        what=f"measure {scenarios[-1].name!r}",
        roles=[f"worker {rank}" for rank in range(scenarios[0].cluster.workers)]
        + [f"server {rank}" for rank in scenarios[0].servers],
        entry=entry,
        job={"scenarios": [scenario.table() for scenario in scenarios], "deadline_seconds": deadline},
        deadline_seconds=deadline,
        steps=sum(scenario.steps for scenario in scenarios),
        progress=progress,
        network=network,
    )
    with launched(launch) as folder:
        traces = [merge(folder, number, scenario) for number, scenario in enumerate(scenarios)]
        imposed = order.imposed(folder)
    if imposed is None:
        return traces
    return [replace(trace, metadata=trace.metadata | {"emulation": imposed}) for trace in traces]


def _network(scenarios: Sequence[Scenario]) -> Plan:
    """The one network on which all scenarios of a launch run."""
    plan, *others = map(Plan.of, scenarios)
    if any(other != plan for other in others):
        raise InputError(
            "scenarios emulated in one launch have different links, and a launch has one network. "
            "Cure: measure them one by one"
        )
    return plan


def estimated_seconds(scenarios: Sequence[Scenario], network: Plan | None = None) -> float:
    """A deadline in seconds that only a run that hangs should reach. network: emulated links, if any."""
    slow = SLOW_BYTES_PER_SECOND
    if network is not None:
        slow = min(slow, network.slowest_bytes_per_second / EMULATION_FACTOR)
    runs = sum(_run_seconds(scenario, slow) for scenario in scenarios)
    return START_SECONDS + START_SECONDS_PER_RANK * scenarios[0].ranks + runs


def _run_seconds(scenario: Scenario, slow_bytes_per_second: float) -> float:
    workers = scenario.cluster.workers
    times = scenario.compute_times()
    drawn = np.stack([times.first(worker, scenario.steps)[: scenario.steps] for worker in range(workers)])
    carried = 2.0 * workers * scenario.gradient_bytes / slow_bytes_per_second
    exchange = STEP_SECONDS + STEP_SECONDS_PER_RANK * scenario.ranks + carried
    return float(COMPUTE_FACTOR * drawn.max(axis=0).sum() + scenario.steps * exchange)


REAL_POLICIES = ("synchronous", "backup")


def _check_available(scenario: Scenario) -> None:
    """Real runs of some things that can be simulated are still to come."""
    communication = scenario.communication
    for asked, value, fine, cure in (
        ("policy.kind", scenario.policy.kind, scenario.policy.kind in REAL_POLICIES, " or ".join(REAL_POLICIES)),
        ("communication.servers", communication.servers, communication.servers == 1, "1"),
        ("communication.colocated", communication.colocated, not communication.colocated, "false"),
        (
            "communication.implementation",
            communication.implementation,
            communication.implementation == "backend",
            "backend",
        ),
        ("cluster.nodes", scenario.cluster.nodes, scenario.cluster.nodes is None, "none"),
        ("failures", scenario.failures, scenario.failures is None, "none"),
    ):
        if not fine:
            raise NotAvailableYetError.of(asked, value, "cannot be run for real yet", f"take {cure}, or simulate it")


def _check(scenarios: Sequence[Scenario], deadline_seconds: float | None) -> None:
    if sys.platform == "win32":
        raise InputError.of("real run on", sys.platform, "needs Linux or macOS", "use the Windows Subsystem for Linux")
    if find_spec("torch") is None:
        raise InputError("a real run needs torch, which is not installed. Cure: pip install 'distsim-course[labs]'")
    if deadline_seconds is not None and not (deadline_seconds > 0 and math.isfinite(deadline_seconds)):
        raise InputError.of("deadline_seconds", deadline_seconds, "must be a number above 0", "write 60")
    for scenario in scenarios:
        _check_available(scenario)
    ranks = [scenario.ranks for scenario in scenarios]
    if len(set(ranks)) > 1:
        raise InputError.of("ranks of the scenarios", ranks, "must be equal in one launch", "measure them one by one")
