"""The table of real runs on this machine: its rows and its forms. What the runs themselves say is tested elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
from click.testing import CliRunner

from distsim import machine_accuracy
from distsim.cli.main import distsim
from distsim.machine_accuracy import GROUPS, LINKS, Links, rows, scenario_of
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace

LATE = 0.004  # seconds of the server's own work per update, in what stands for a measurement


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Simulations stand for real runs; told: how many scenarios each call has, and whether links are imposed."""
    told: list[tuple[int, bool]] = []

    def runs(scenarios: Sequence[Scenario], *, emulate: bool) -> Iterator[tuple[Trace, Trace]]:
        told.append((len(scenarios), emulate))
        for scenario in scenarios:
            yield simulate(scenario), simulate(scenario, apply_seconds=LATE if scenario.servers else 0.0)

    monkeypatch.setattr(machine_accuracy, "runs", runs)
    return told


def test_every_policy_has_a_row_on_all_links(launches: list[tuple[int, bool]]) -> None:
    reports: list[tuple[int, int]] = []
    found = rows(progress=lambda done, total: reports.append((done, total)))
    kinds = sum(map(len, GROUPS))
    assert len(found) == len(LINKS) * kinds
    assert len({(row.links, row.policy, row.communication) for row in found}) == len(found)
    assert reports == [(done, len(found)) for done in range(1, len(found) + 1)]
    assert launches == [(len(group), place.bandwidth is not None) for place in LINKS for group in GROUPS]


def test_a_row_tells_the_errors_of_its_runs(launches: list[tuple[int, bool]]) -> None:
    """A synchronous step of the stand-in takes 4 ms longer than predicted, for each of its steps."""
    place = Links("1 MiB", "200 Mbit/s")
    row = next(row for row in rows([place]) if (row.policy, row.communication) == ("synchronous", "parameter_server"))
    predicted = simulate(scenario_of(({"kind": "synchronous"}, {"kind": "parameter_server"}), place)).total_seconds
    late = 16 * LATE
    assert row.as_dict()["total_pct"] == pytest.approx(100 * late / (predicted + late))
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


@pytest.mark.parametrize(
    "asked", [["--machine", "--simgrid", "x.json"], ["--markdown"], ["--machine", "--markdown", "--json"]]
)
def test_tables_that_exclude_each_other_are_refused(asked: list[str]) -> None:
    said = CliRunner().invoke(distsim, ["validate", *asked])
    assert "Cure:" in str(said.exception)
