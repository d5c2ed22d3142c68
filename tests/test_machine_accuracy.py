"""The table of real runs on this machine: its rows and its forms. What the runs themselves say is tested elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from distsim import machine_accuracy
from distsim.cli.accuracy_tables import machine_markdown
from distsim.cli.main import distsim
from distsim.errors import DistsimError, InputError, RunError
from distsim.machine_accuracy import AMONG_PEERS, GROUPS, LINKS, WITH_SERVER, Links, Missing, Row, rows, scenario_of
from distsim.policies import POLICIES, WithServer
from distsim.progress import Phase
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

LATE = 0.004  # seconds of the server's own work per update, in what stands for a measurement


def test_every_policy_with_a_server_has_a_row() -> None:
    with_server = {kind for kind, policy in POLICIES.items() if issubclass(policy, WithServer)}
    assert {policy["kind"] for policy, _ in WITH_SERVER} == with_server


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Simulations stand for real runs; told: how many scenarios each launch has, and whether links are imposed."""
    told: list[tuple[int, bool]] = []

    def runs(scenarios: Sequence[Scenario], *, emulate: bool) -> Iterator[tuple[Trace, Trace]]:
        told.append((len(scenarios), emulate))
        for scenario in scenarios:
            yield simulate(scenario), simulate(scenario, apply_seconds=LATE if scenario.servers else 0.0)

    monkeypatch.setattr(machine_accuracy, "runs", runs)
    monkeypatch.setattr(machine_accuracy.trial, "check", lambda _plan: None)
    return told


Fail = Callable[[Scenario, bool], None]


@pytest.fixture
def failing(launches: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch) -> Callable[[Fail], None]:
    """Has some runs fail: called with each scenario and whether its links are imposed."""
    assert not launches
    good = machine_accuracy.runs  # the fixture's

    def have(fail: Fail) -> None:
        def runs(scenarios: Sequence[Scenario], *, emulate: bool) -> Iterator[tuple[Trace, Trace]]:
            for scenario in scenarios:
                fail(scenario, emulate)
            return good(scenarios, emulate=emulate)

        monkeypatch.setattr(machine_accuracy, "runs", runs)

    return have


@pytest.fixture
def no_right(launches: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Links cannot be emulated; told: how many launches there had been when that was asked."""
    told: list[int] = []

    def check(_plan: Any) -> None:
        told.append(len(launches))
        raise InputError.of("--emulate", True, "needs a right", "be root")

    monkeypatch.setattr(machine_accuracy.trial, "check", check)
    return told


def test_every_policy_has_a_row_on_all_links(launches: list[tuple[int, bool]]) -> None:
    reports: list[Phase] = []
    found = rows(progress=reports.append)
    kinds = sum(map(len, GROUPS))
    assert len(found) == len(LINKS) * kinds
    assert len({(row.links, row.policy, row.communication) for row in found}) == len(found)
    assert reports == [Phase.counted("row", done, len(found)) for done in range(1, len(found) + 1)]
    one_by_one = [(1, False)] * kinds
    assert launches == one_by_one + [(len(group), True) for place in LINKS if place.bandwidth for group in GROUPS]


def test_a_row_tells_the_errors_of_its_runs(launches: list[tuple[int, bool]]) -> None:
    """A synchronous step of the stand-in takes 4 ms longer than predicted, for each of its steps."""
    place = Links("1 MiB", "200 Mbit/s")
    asked = ("synchronous", "parameter_server")
    row = next(row for row in rows([place]) if (row.policy, row.communication) == asked)
    assert isinstance(row, Row)
    predicted = simulate(scenario_of(({"kind": "synchronous"}, {"kind": "parameter_server"}), place)).total_seconds
    late = 16 * LATE
    error = -100 * late / (predicted + late)
    assert row.as_dict()["total_pct"] == pytest.approx(error)
    assert re.search(rf"\d / {error:.1f} %", machine_markdown([row]))
    assert row.as_dict()["mean_staleness"] == [0.0, 0.0]
    assert launches


@pytest.mark.parametrize("form", ["--json", "--markdown", None])
def test_the_command_prints_every_row(form: str | None, launches: list[tuple[int, bool]]) -> None:
    said = CliRunner().invoke(distsim, ["validate", "--machine", *([form] if form else [])], env={"COLUMNS": "200"})
    assert said.exit_code == 0
    kinds = sum(map(len, GROUPS))
    if form == "--json":
        assert len(json.loads(said.stdout)) == len(LINKS) * kinds
    elif form == "--markdown":
        head, _, *lines = said.stdout.splitlines()
        assert len(lines) == kinds
        assert {line.count("|") for line in [head, *lines]} == {len(LINKS) + 2}
        assert "| cancelling backup, parameter server |" in said.stdout
    else:
        assert all(said.stdout.count(f"Real runs on this machine: {place.name}") == 1 for place in LINKS)
        assert said.stdout.count("stale synchronous, parameter server") == len(LINKS)
    assert launches


def told(form: str | None = None) -> tuple[str, DistsimError | None]:
    """What the command printed, and the error it ended with."""
    said = CliRunner().invoke(distsim, ["validate", "--machine", *([form] if form else [])], env={"COLUMNS": "200"})
    assert said.exception is None or isinstance(said.exception, DistsimError)
    return said.stdout, said.exception


def test_the_right_to_emulate_is_asked_before_the_first_run(
    launches: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(machine_accuracy.trial, "check", lambda _plan: asked.append(len(launches)))
    assert all(isinstance(row, Row) for row in rows())
    assert asked == [0]
    asked.clear()
    rows([Links("4 MiB")])
    assert asked == []


def test_without_the_right_loopback_is_measured_and_the_rest_told(
    no_right: list[int], launches: list[tuple[int, bool]]
) -> None:
    printed, error = told()
    assert error is None
    assert no_right == [0]
    assert not any(emulate for _, emulate in launches)
    assert printed.count("Real runs on this machine") == 1
    names = [place.name for place in LINKS if place.bandwidth]
    assert f"Not measured over {' and '.join(names)}: synchronous, ring; local sgd, ring; " in printed
    assert "; flexrr, parameter server" in printed
    assert ", parameter server. --emulate = True: needs a right. Cure: be root" in printed
    kinds = sum(map(len, GROUPS))
    table = json.loads(told("--json")[0])
    assert [("error" in row, row["links"].startswith("emulated")) for row in table] == (
        [(False, False)] * kinds + [(True, True)] * kinds * len(names)
    )


@pytest.mark.parametrize("form", ["--json", "--markdown", None])
def test_a_run_that_fails_does_not_cost_the_others(form: str | None, failing: Callable[[Fail], None]) -> None:
    """A loopback run has a launch of its own; where an emulated one fails, so do those that share its launch."""

    def fail(scenario: Scenario, emulate: bool) -> None:
        if scenario.policy.kind == ("ddp" if emulate else "asynchronous"):
            raise RunError(f"{scenario.policy.kind}: rank 2 died")

    failing(fail)
    kinds, emulated = sum(map(len, GROUPS)), len(LINKS) - 1
    failed = 1 + emulated * len(AMONG_PEERS)
    printed, error = told(form)
    assert error is not None
    assert error.exit_code == 3
    assert f"{failed} of {len(LINKS) * kinds} rows could not be measured" in str(error)
    if form == "--json":
        table = json.loads(printed)
        assert len(table) == len(LINKS) * kinds
        assert sum(row.get("error", "").endswith("rank 2 died") for row in table) == failed
        return
    assert "Not measured over loopback, 4 MiB: asynchronous, parameter server. asynchronous: rank 2 died" in printed
    assert ": synchronous, ring; local sgd, ring; ddp, ring. ddp: rank 2 died" in printed
    if form == "--markdown":
        lines = [line for line in printed.splitlines() if line.startswith("|")]
        assert len(lines) == 2 + kinds
        assert sum(line.count("| – ") for line in lines) == failed
    else:
        assert printed.count("synchronous, parameter server ") >= len(LINKS)


def test_rows_of_a_launch_that_came_before_it_failed_are_kept(
    launches: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs(scenarios: Sequence[Scenario], *, emulate: bool) -> Iterator[tuple[Trace, Trace]]:
        launches.append((len(scenarios), emulate))
        yield simulate(scenarios[0]), simulate(scenarios[0])
        raise RunError("died")

    monkeypatch.setattr(machine_accuracy, "runs", runs)
    found = rows([Links("1 MiB", "200 Mbit/s")])
    assert [type(row) for row in found] == [kind for group in GROUPS for kind in [Row] + [Missing] * (len(group) - 1)]
    assert len({(row.policy, row.communication) for row in found}) == len(found)


def test_where_nothing_can_run_there_is_one_sentence(no_right: list[int], failing: Callable[[Fail], None]) -> None:
    def fail(_scenario: Scenario, _emulate: bool) -> None:
        raise InputError("a real run needs torch")

    failing(fail)
    printed, error = told()
    assert (printed, str(error)) == ("", "a real run needs torch")
    assert error is not None
    assert error.exit_code == 2
    assert no_right == [0]


@pytest.mark.parametrize(
    "asked", [["--machine", "--simgrid", "x.json"], ["--markdown"], ["--machine", "--markdown", "--json"]]
)
def test_tables_that_exclude_each_other_are_refused(asked: list[str]) -> None:
    said = CliRunner().invoke(distsim, ["validate", *asked])
    assert "Cure:" in str(said.exception)
