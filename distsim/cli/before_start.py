"""What is told and asked before long work: that it takes long, and that too many processes share the cores."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

import click

from distsim.cli.output import warn
from distsim.errors import InputError
from distsim.progress import Phase, about, bar
from distsim.runtime.expected_time import expected_seconds
from distsim.runtime.limits import check_available
from distsim.runtime.machine import check_memory, crowding
from distsim.runtime.measure import check_machine, with_own_model
from distsim.runtime.roles import roles
from distsim.scenario import Scenario

LONG_SECONDS = 600.0

yes_option = click.option("--yes", is_flag=True, help="Start without a question, also what takes long.")


def agree(asked: str, value: object, rule: str, cure: str, *, yes: bool) -> None:
    """Asks on a terminal whether to start. Raises InputError where the answer is no, or where nobody can be asked.

    cure: what to do instead of --yes.
    """
    if yes:
        return
    refusal = InputError.of(asked, value, rule, f"add --yes to start all the same, or {cure}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise refusal
    click.echo(f"distsim: {asked} = {value!r}: {rule}.", err=True)
    if not click.confirm("Start?", err=True):
        raise InputError(f"not started. To make it shorter, {cure}")


def agree_to_seconds(asked: str, value: object, seconds: float, cure: str, *, yes: bool) -> None:
    """Asks where the work should take longer than `LONG_SECONDS`."""
    if seconds > LONG_SECONDS:
        agree(asked, value, f"takes {about(seconds)} on this machine", cure, yes=yes)


def with_own_models(scenarios: Sequence[Scenario], *, shown: bool = True) -> list[Scenario]:
    """The scenarios with checked models and their sizes, where these are the user's own.

    What a model's own code prints goes to standard error. Raises InputError where a model breaks a rule.
    """
    if not any(scenario.workload.own_model for scenario in scenarios):
        return list(scenarios)
    with bar("distsim", shown=shown) as report, redirect_stdout(sys.stderr):
        report(Phase("checking the model"))
        return [with_own_model(scenario) for scenario in scenarios]


def agree_to_runs(
    scenarios: Sequence[Scenario], *, yes: bool, emulate: bool = False, deadline: float | None = None,
    shown: bool = True, processes: int = 0,
) -> None:  # fmt: skip
    """Asks before real runs that take long, and warns of too many processes. deadline: of each run.

    emulate: whether the scenarios' links are imposed. processes: how many start on this machine; 0 for all of a
    scenario. Raises InputError where this machine cannot run them, and what `agree` raises.
    """
    check_machine(deadline)
    seconds = 0.0
    with bar("distsim", shown=shown) as report:
        report(Phase("estimating how long it takes"))
        for scenario in scenarios:
            check_available(scenario)
            check_memory(scenario, processes or len(roles(scenario)))
            expected = expected_seconds([scenario], emulate=emulate, processes=processes)
            seconds += min(expected, deadline or expected)
    warn_of_crowds(*(processes or len(roles(scenario)) for scenario in scenarios))
    names = ", ".join(scenario.name for scenario in scenarios)
    agree_to_seconds("real run", names, seconds, "take fewer steps, or a --deadline", yes=yes)


def warn_of_crowds(*ranks: int) -> None:
    """Says on standard error where so many processes are too many for this machine's cores."""
    warn(filter(None, [crowding(max(ranks, default=0))]))
