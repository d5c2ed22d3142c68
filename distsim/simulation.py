"""Simulates a scenario and returns the Trace of the run."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real

from distsim.calibration import Calibration, calibrated
from distsim.collectives import Schedule
from distsim.engine import selection
from distsim.engine.failures import with_failures
from distsim.errors import InputError
from distsim.policies import LocalSgd, Rule, Synchronous
from distsim.policies.own_rule import OwnRule, load_rule
from distsim.scenario import Scenario, check_scenario
from distsim.trace import Trace
from distsim.units import BOUNDS
from distsim.workload import unprofiled


def simulate(
    scenario: Scenario,
    calibration: Calibration | None = None,
    *,
    rule: Rule | str | None = None,
    schedule: Schedule | None = None,
    engine: selection.Engine = "auto",
    apply_seconds: float = 0.0,
) -> Trace:
    """Simulates `scenario`; the same scenario gives a bit-identical Trace.

    calibration: measured links and overheads, which replace those of the scenario. apply_seconds: without a
    calibration, the servers' own work for each update, in seconds. rule: a fresh rule of your own that replaces the
    policy's rule, or "my_rule.py:MyRule", which makes a rule; `policy` still decides when the run ends and how
    compute times are keyed. schedule: a schedule of your own, by which workers sum in place of the scenario's
    collective; the policy is synchronous or local_sgd, and there is no server. engine: "story" is the reference;
    "loop" and "recurrence" give the same result faster; "auto" takes the fastest engine for the scenario, and the
    metadata name it. Raises InputError where `scenario` is no scenario, a model of the user's own has no profile, the
    rule decides something impossible, the schedule is no all-reduce of its workers, the engine cannot serve the
    scenario, apply_seconds is not a valid time, or apply_seconds is not 0 although a calibration gives it or no
    server makes updates.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> len(trace.updates), trace.producer
    (50, 'simulated')
    """
    check_scenario(scenario)
    check_simulated(scenario)
    _check_apply_seconds(apply_seconds, scenario, calibration)
    own = None
    if rule is not None:
        check_decides(scenario)
        workers = scenario.cluster.workers
        own = load_rule(rule, workers) if isinstance(rule, str) else OwnRule(rule, workers)
    if schedule is not None:
        check_sums(scenario, schedule)
    if calibration is None:
        trace = selection.run(engine, scenario, apply_seconds, own, schedule=schedule)
    else:
        exchange = calibration.of(scenario)
        trace = selection.run(
            engine, calibrated(scenario, exchange), exchange.apply_seconds, own, exchange.cores, schedule
        )  # fmt: skip
        trace = replace(trace, metadata=trace.metadata | {"calibration": exchange.as_dict()})
    if rule is not None:
        name = rule if isinstance(rule, str) else type(rule).__name__
        trace = replace(trace, metadata=trace.metadata | {"rule": name})
    if schedule is not None:
        trace = replace(trace, metadata=trace.metadata | {"schedule": schedule.name})
    if scenario.failures is not None:
        trace = with_failures(trace, scenario.failures, scenario.seed)
    return trace


def _check_apply_seconds(seconds: float, scenario: Scenario, calibration: Calibration | None) -> None:
    most = BOUNDS["second"][1]
    if not isinstance(seconds, Real) or isinstance(seconds, bool) or not 0.0 <= seconds <= most:
        raise InputError.of("apply_seconds", seconds, f"must be a number from 0 to {most:.0e}", "write 0.005 for 5 ms")
    if seconds == 0.0:
        return
    if calibration is not None:
        raise InputError.of(
            "apply_seconds", seconds, "stands beside a calibration, which tells the servers' own work",
            "leave one of the two out",
        )  # fmt: skip
    if not (scenario.server_decides or (scenario.servers and scenario.policy.averages_parameters)):
        raise InputError.of(
            "apply_seconds", seconds, "is a server's own work for each update, and here no server makes any",
            'leave it out, or write kind = "parameter_server" in [communication]',
        )  # fmt: skip


def check_simulated(scenario: Scenario) -> None:
    """Raises InputError where the model is the user's own, and no profile tells its sizes and times."""
    if scenario.unprofiled:
        raise unprofiled(str(scenario.workload.model))


def check_decides(scenario: Scenario) -> None:
    """Raises InputError where the scenario has no server that could use a rule."""
    if not scenario.server_decides:
        raise InputError.of(
            "a rule of your own with policy.kind", scenario.policy.kind, "needs a parameter server to decide for",
            'write kind = "parameter_server" in [communication]',
        )  # fmt: skip


def check_sums(scenario: Scenario, schedule: Schedule) -> None:
    """Raises InputError unless `schedule` is an all-reduce that the scenario's workers can take after their steps."""
    if scenario.servers or not isinstance(scenario.policy, Synchronous | LocalSgd):
        raise InputError.of(
            "a schedule of your own with policy.kind", scenario.policy.kind,
            "needs workers that sum among themselves after their steps",
            'write kind = "synchronous" or "local_sgd" in [policy], and kind = "ring" in [communication]',
        )  # fmt: skip
    if (schedule.workers, schedule.servers) != (scenario.cluster.workers, 0):
        raise InputError.of(
            "a schedule of your own", schedule.name,
            f"is of {schedule.workers} workers and {schedule.servers} servers, and the scenario has "
            f"{scenario.cluster.workers} workers that sum among themselves",
            f"write it for {scenario.cluster.workers} workers",
        )  # fmt: skip
    if schedule.start is not None or schedule.end is not None or schedule.groups is not None:
        raise InputError.of(
            "a schedule of your own", schedule.name, "is no all-reduce of all workers",
            "leave start, end and groups out",
        )  # fmt: skip
    schedule.check()
