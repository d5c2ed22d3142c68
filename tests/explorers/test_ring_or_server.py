"""Ring against parameter server, without a browser: simulated step times are those of the formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distsim.errors import InputError
from distsim.explorers.ring_or_server import (
    BUSIEST,
    COMPUTE_MILLISECONDS,
    STEP,
    Parameters,
    explore,
    explorer,
    scenarios,
)
from distsim.metrics import step_durations
from distsim.simulation import simulate
from distsim.theory.collectives import parameter_server_seconds, ring_all_reduce_seconds

LINKS = {"bytes_per_second": 1.25e9, "latency_seconds": 50e-6}
BYTES = 16 * 2**20


def test_lines_are_the_formulas_on_equal_links() -> None:
    ring, server = explore(Parameters(workers=20)).figure.data
    assert list(ring.x) == list(server.x) == [2, 4, 8, 16, 20]
    for line, formula in ((ring, ring_all_reduce_seconds), (server, parameter_server_seconds)):
        expected = [COMPUTE_MILLISECONDS + 1e3 * formula(BYTES, count, **LINKS) for count in line.x]
        assert list(line.y) == pytest.approx(expected)


@pytest.mark.parametrize("colocated", [False, True])
def test_more_servers_share_the_bytes(colocated: bool) -> None:
    found = explore(Parameters(workers=8, servers=4, colocated=colocated))
    formula = parameter_server_seconds(BYTES, 8, servers=4, colocated=colocated, **LINKS)
    assert found.table[1][STEP] == pytest.approx(COMPUTE_MILLISECONDS + 1e3 * formula)
    assert found.table[1]["way"] == "4 servers"


def test_colocated_servers_need_as_many_workers_as_they_are() -> None:
    ring, servers = explore(Parameters(workers=6, servers=4, colocated=True)).figure.data
    assert list(ring.x) == [2, 3, 4, 5, 6]
    assert list(servers.x) == [4, 5, 6]


def test_a_slow_nic_slows_the_ring_but_not_a_server_whose_own_link_is_narrower_still() -> None:
    equal, slow = (explore(Parameters(slow=factor)).table for factor in (1.0, 4.0))
    assert slow[0][STEP] > 1.5 * equal[0][STEP]  # type: ignore[operator]
    assert slow[1][STEP] == pytest.approx(equal[1][STEP])
    assert [row[BUSIEST] for row in slow] == [pytest.approx(row[BUSIEST]) for row in equal]


@pytest.mark.parametrize("workers", [6, 20])
@pytest.mark.parametrize("servers", [1, 3, 6])
@pytest.mark.parametrize("colocated", [False, True])
def test_the_step_shown_is_that_of_a_long_run(workers: int, servers: int, colocated: bool) -> None:
    """Beside a slow NIC, colocated servers answer at different times: the second step is not yet as the rest."""
    parameters = Parameters(workers=workers, servers=servers, colocated=colocated, slow=4.0)
    for scenario, row in zip(scenarios(parameters), explore(parameters).table, strict=True):
        assert row[STEP] == pytest.approx(1e3 * step_durations(simulate(scenario)).seconds[-1], rel=1e-9)


def test_scenarios_have_the_steps_of_a_real_run() -> None:
    assert [scenario.steps for scenario in scenarios(Parameters())] == [20, 20]


def test_more_colocated_servers_than_workers_are_refused_and_it_recovers() -> None:
    with pytest.raises(InputError, match="at most the 4 workers"):
        explore(Parameters(workers=4, servers=8, colocated=True))
    view = explorer()
    view.controls["colocated"].value = True
    view.controls["workers"].value = 2
    view.controls["servers"].value = 3
    assert "at most the 2 workers" in view.message.value
    view.controls["workers"].value = 5
    assert view.message.value == ""


def test_the_sentence_tells_both_times() -> None:
    assert explore(replace(Parameters(), workers=4)).summary.startswith("With 4 workers, a step takes 70.4 ms around")
