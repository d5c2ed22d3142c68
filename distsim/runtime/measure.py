"""Real runs of scenarios: a scenario in, the Trace of its real run out, with a process per worker and server."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from operator import itemgetter
from typing import Any

import numpy as np

from distsim.errors import InputError, NotAvailableYetError
from distsim.extras import need
from distsim.pipeline_stages import stages_of
from distsim.policies import Ddp, Pipeline, Programmed
from distsim.policies.own_rule import load_rule, located
from distsim.progress import Report
from distsim.runtime.emulation import coordination
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.expected_time import expected_seconds
from distsim.runtime.launch.launcher import Launch, Stage, launched
from distsim.runtime.launch.node import Node, shares
from distsim.runtime.limits import check_available, check_nodes
from distsim.runtime.machine import check_memory, core_of_rank
from distsim.runtime.other_work import other_work
from distsim.runtime.recording.merge import merge
from distsim.runtime.recording.partial_trace import partial_trace
from distsim.runtime.roles import roles
from distsim.scenario import Scenario, check_scenario
from distsim.simulation import check_decides, simulate
from distsim.trace import Trace

RANK_ENTRY = ("-m", "distsim.runtime.ranks.entry_point")
RANK_IMPORTS = ("distsim.runtime.ranks.session",)
DDP_IMPORTS = ("torch._dynamo",)  # by DistributedDataParallel itself, when a rank first uses it
# The estimated deadline is far above the time of a run, and far below a person's patience with a run that hangs.
START_SECONDS, START_SECONDS_PER_RANK = 30.0, 5.0
MEETING_SECONDS = 120.0  # until all machines of a run have been started
COMPUTE_FACTOR = 3.0
STEP_SECONDS, STEP_SECONDS_PER_RANK = 0.1, 0.02
SLOW_BYTES_PER_SECOND = 50e6
MESSAGES_PER_RANK = 4.0  # one after the other, in a step
EMULATION_FACTOR = 3.0  # how much slower than their shapers' rate links may become on a machine that is busy
LARGEST_DEADLINE_SECONDS = 30 * 86400.0
MOST_RESTARTS = 10_000
RESTART_SECONDS, RESTART_SECONDS_PER_RANK = 3.0, 1.0  # torchrun's own, where the scenario's is shorter
MODEL_SECONDS_PER_SAMPLE = 0.02  # forward and backward, of one worker after the other


def measure(
    scenario: Scenario,
    *,
    emulate: bool = False,
    pinned: bool = False,
    rule: str | None = None,
    deadline_seconds: float | None = None,
    progress: Report | None = None,
) -> Trace:
    """Runs `scenario` for real on this machine.

    Workers sleep the scenario's seeded compute times, after real forward and backward where the workload has a model.
    emulate: whether the scenario's links are imposed; otherwise the machine's own links carry the bytes. The trace's
    metadata gives the imposed links under "emulation". pinned: whether each rank stays on one core, where the system
    lets it; the ranks take turns at the cores. rule: "my_rule.py:MyRule", a rule of your own in place of the
    policy's; only the server loads it. deadline_seconds: from the launch (default: estimated). progress: called with
    the run's `Phase` many times a second, from the launch on; it counts steps. An error in it ends the run.
    Raises RunError, which names the rank and its place in the code, and carries the trace recorded until then.
    KeyboardInterrupt and the SystemExit of a SIGTERM carry that trace too. Raises InputError where torch or the right
    to emulate links is missing, or the rule decides something impossible.
    """
    (trace,) = measure_all(
        [scenario], emulate=emulate, pinned=pinned, rules=[rule], deadline_seconds=deadline_seconds, progress=progress
    )
    return trace


def measure_all(
    scenarios: Sequence[Scenario],
    *,
    emulate: bool = False,
    pinned: bool = False,
    rules: Sequence[str | None] = (),
    deadline_seconds: float | None = None,
    progress: Report | None = None,
    called: Sequence[str] = (),
    entry: Sequence[str] = RANK_ENTRY,
) -> list[Trace]:
    """Runs scenarios with the same number of ranks one after the other in one launch, which costs one start.

    Arguments and errors are those of `measure`, for all scenarios together. rules: one for each of the first
    scenarios; the others have none. called: what the progress calls the steps of each scenario; neighbours of one name
    are counted together. entry: what torchrun starts as each rank.
    """
    _check(scenarios, deadline_seconds)
    scenarios = [with_own_model(scenario) for scenario in scenarios]
    _check_rules(scenarios, rules)
    if not scenarios:
        return []
    for scenario in scenarios:
        check_memory(scenario, len(roles(scenario)))
    launch = _launch(scenarios, rules, deadline_seconds, NetworkPlan.of_launch(scenarios) if emulate else None)
    if progress is not None:
        stages, expected = _stages(scenarios, called), expected_seconds(scenarios, emulate=emulate)
        launch = replace(launch, progress=progress, stages=stages, expected_seconds=expected)
    cores = [core_of_rank(rank) for rank in range(len(launch.roles))] if pinned else []
    launch = replace(launch, entry=entry, job=launch.job | {"cores": cores})
    with other_work(len(launch.roles)) as others, launched(launch) as folder:
        traces = [merge(folder, number, scenario) for number, scenario in enumerate(scenarios)]
        emulation = coordination.imposed(folder)
    around = {"other_work": others.as_dict()}
    return [
        replace(trace, metadata=trace.metadata | around | _added(rule, emulation))
        for trace, rule in zip_longest(traces, rules)
    ]


def measure_on_node(
    scenario: Scenario,
    node: Node,
    *,
    rule: str | None = None,
    deadline_seconds: float | None = None,
    progress: Report | None = None,
    entry: Sequence[str] = RANK_ENTRY,
) -> Trace | None:
    """This machine's part of a run on several. All machines call it: the trace on machine 0, None on the others.

    All arguments but `node` are those of `measure_all`, and the same on all machines. The clocks of the machines are
    compared before and after the run; the trace's metadata says under "clock" how large the error may be. Raises what
    `measure` raises, and InputError where the scenario cannot run on several machines, or this machine cannot reach
    the others. A machine that ends early makes the other machines end with RunError.
    """
    _check([scenario], deadline_seconds)
    scenario = with_own_model(scenario)
    _check_rules([scenario], [rule])
    check_nodes(scenario)
    machines = shares(scenario, len(roles(scenario)), node.nodes)
    node.check()
    launch = _launch([scenario], [rule], deadline_seconds, None, machines)
    here = machines[node.number]
    check_memory(scenario, len(here))
    launch = replace(launch, job=launch.job | {"node": node.number}, node=node, here=here, entry=entry)
    if progress is not None:
        stages, expected = _stages([scenario], ()), expected_seconds([scenario], processes=len(here))
        launch = replace(launch, progress=progress, stages=stages, expected_seconds=expected)
    with launched(launch) as folder:
        if not node.gathers:
            return None
        trace = merge(folder, 0, scenario)
    return replace(trace, metadata=trace.metadata | {"machines": machines} | _added(rule, None))


def with_own_model(scenario: Scenario) -> Scenario:
    """The scenario with a checked model and its sizes, where the model is the user's own; otherwise the same scenario.

    Raises InputError before processes start: where the model breaks a rule, or torch is missing.
    """
    if not scenario.workload.own_model:
        return scenario
    need("torch", "a real run")
    from distsim.runtime.profiling.profile import ready

    return ready(scenario)


def _check_rules(scenarios: Sequence[Scenario], rules: Sequence[str | None]) -> None:
    for scenario, rule in zip(scenarios, rules, strict=False):
        if rule is not None:
            check_decides(scenario)
            load_rule(rule, scenario.cluster.workers)  # an error of the file is told before processes start
            if scenario.failures is not None:
                raise NotAvailableYetError.of(
                    "rule", rule, "cannot come back from a checkpoint in a real run yet", "remove [failures]"
                )


def _launch(
    scenarios: Sequence[Scenario],
    rules: Sequence[str | None],
    deadline_seconds: float | None,
    network: NetworkPlan | None,
    machines: Sequence[Sequence[int]] = (),
) -> Launch:
    """The launch of a measurement. machines: the ranks of each machine, where there are several."""
    own = [located(rule) if rule is not None else None for rule in rules]
    deadline = deadline_seconds
    if deadline is None:
        deadline = estimated_seconds(scenarios, network) + (MEETING_SECONDS if machines else 0.0)
    return Launch(
        what=f"measure {scenarios[-1].name!r}",
        roles=roles(scenarios[0]),
        entry=RANK_ENTRY,
        job={
            "scenarios": [scenario.table() for scenario in scenarios],
            "rules": own + [None] * (len(scenarios) - len(own)),
            "machines": list(machines),
            "cores": [],
            "deadline_seconds": deadline,
        },
        deadline_seconds=deadline,
        network=network,
        restarts=MOST_RESTARTS if any(scenario.failures for scenario in scenarios) else 0,
        salvage=lambda folder: partial_trace(folder, scenarios),
        imports=RANK_IMPORTS + (DDP_IMPORTS if any(isinstance(one.policy, Ddp) for one in scenarios) else ()),
    )


def _stages(scenarios: Sequence[Scenario], called: Sequence[str]) -> list[Stage]:
    """What the launch does one after the other."""
    count = len(scenarios)
    names = called or (["step"] if count == 1 else [f"run {number} of {count}, step" for number in range(1, count + 1)])
    together = itertools.groupby(zip(names, scenarios, strict=True), key=itemgetter(0))
    return [Stage(name, sum(scenario.steps for _, scenario in group)) for name, group in together]


def _added(rule: str | None, emulation: dict[str, Any] | None) -> dict[str, Any]:
    """The rule and the emulation for the metadata, where there are any."""
    return {key: value for key, value in (("rule", rule), ("emulation", emulation)) if value is not None}


def estimated_seconds(scenarios: Sequence[Scenario], network: NetworkPlan | None = None) -> float:
    """A deadline in seconds that only a run that hangs reaches. network: emulated links, if any."""
    slow, waits = SLOW_BYTES_PER_SECOND, 0.0
    if network is not None:
        slow = min(slow, network.slowest_bytes_per_second / EMULATION_FACTOR)
        waits = EMULATION_FACTOR * MESSAGES_PER_RANK * len(roles(scenarios[0])) * network.latency_seconds
    runs = sum(_run_seconds(scenario, slow) + scenario.steps * waits for scenario in scenarios)
    return START_SECONDS + START_SECONDS_PER_RANK * len(roles(scenarios[0])) + runs


def _run_seconds(scenario: Scenario, slow_bytes_per_second: float) -> float:
    if scenario.failures is not None:
        return _with_failures_seconds(scenario, slow_bytes_per_second)
    workers = scenario.cluster.workers
    times = scenario.compute_times()
    drawn = np.stack([times.first(worker, scenario.steps)[: scenario.steps] for worker in range(workers)])
    if isinstance(scenario.policy, Programmed):
        exchanges = scenario.policy.program(scenario.workload, workers).exchanges
        computed, per_step = drawn.max(axis=0).sum(), sum(exchange.num_bytes for exchange in exchanges)
    elif isinstance(scenario.policy, Pipeline):  # one stage after the other, if there is a single micro-batch
        calls = stages_of(scenario.policy, scenario.workload, workers).calls
        handed_on = scenario.workload.handed_on_bytes or 0.0
        computed, per_step = drawn.sum(), handed_on + sum(call.num_bytes for call in calls)
    else:
        computed, per_step = drawn.max(axis=0).sum(), scenario.gradient_bytes
    carried = 2.0 * workers * per_step / slow_bytes_per_second
    exchange = STEP_SECONDS + STEP_SECONDS_PER_RANK * scenario.ranks + carried
    model = MODEL_SECONDS_PER_SAMPLE * workers * scenario.workload.batch if scenario.workload.model else 0.0
    if scenario.workload.profile is not None:
        model = COMPUTE_FACTOR * workers * scenario.workload.profile.step_seconds
    return float(COMPUTE_FACTOR * computed + scenario.steps * (exchange + model))


def _with_failures_seconds(scenario: Scenario, slow_bytes_per_second: float) -> float:
    """The same with failures. Raises InputError where the run would make no progress."""
    useful = _run_seconds(scenario.model_copy(update={"failures": None}), slow_bytes_per_second)
    assert scenario.failures is not None
    restart = max(scenario.failures.restart_cost_seconds, RESTART_SECONDS + RESTART_SECONDS_PER_RANK * scenario.ranks)
    costly = scenario.failures.model_copy(update={"restart_cost_seconds": restart})
    predicted = simulate(scenario.model_copy(update={"failures": costly}))
    return useful + COMPUTE_FACTOR * predicted.total_seconds


def _check(scenarios: Sequence[Scenario], deadline_seconds: float | None) -> None:
    check_machine(deadline_seconds)
    for scenario in scenarios:
        check_scenario(scenario)
        check_available(scenario)
    ranks = [len(roles(scenario)) for scenario in scenarios]
    if len(set(ranks)) > 1:
        raise InputError.of("ranks of the scenarios", ranks, "must be equal in one launch", "measure them one by one")


def check_machine(deadline_seconds: float | None) -> None:
    """Raises InputError where this machine cannot run anything for real, or the deadline makes no sense."""
    if sys.platform == "win32":
        raise InputError.of("real run on", sys.platform, "needs Linux or macOS", "use the Windows Subsystem for Linux")
    need("torch", "a real run")
    if deadline_seconds is not None and not 0 < deadline_seconds <= LARGEST_DEADLINE_SECONDS:
        rule = f"must be a number above 0 and at most {LARGEST_DEADLINE_SECONDS:.0f}, a month"
        raise InputError.of("deadline_seconds", deadline_seconds, rule, "write 60")
