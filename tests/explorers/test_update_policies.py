"""Three policies side by side, without a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from distsim.explorers.update_policies import (
    GRADIENTS,
    HISTOGRAM,
    NAMES,
    STALENESS,
    Parameters,
    explore,
    scenarios,
)
from distsim.metrics import mean_staleness
from distsim.simulation import simulate


def test_all_three_see_the_same_cluster_and_draws() -> None:
    tables = [scenario.table() for scenario in scenarios(Parameters(workers=6, slow=3.0))]
    for table in tables:
        del table["policy"], table["name"]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.parametrize(
    ("parameters", "key", "value"),
    [
        (Parameters(cv=0.0, slow=1.0), "compute", {"mean": "50 ms"}),
        (
            Parameters(slow=2.5),
            "compute",
            {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3, "slow": {"0": 2.5}},
        ),
        (Parameters(ahead=5), "policy", {"kind": "stale_synchronous", "staleness": 5}),
    ],
)
def test_parameters_reach_the_scenario(parameters: Parameters, key: str, value: Any) -> None:
    assert scenarios(parameters)[-1].table()[key] == value


def test_the_table_tells_what_the_metrics_do() -> None:
    found = explore(Parameters())
    traces = [simulate(scenario) for scenario in scenarios(Parameters())]
    assert [row[STALENESS] for row in found.table] == [mean_staleness(trace) for trace in traces]
    for row, trace in zip(found.table, traces, strict=True):
        assert row[GRADIENTS] == pytest.approx(trace.contributions.applied.sum() / trace.total_seconds)


def test_waiting_costs_gradients_and_not_waiting_costs_staleness() -> None:
    waiting, free, held = explore(Parameters(slow=3.0)).table
    assert waiting[GRADIENTS] < held[GRADIENTS] < free[GRADIENTS]  # type: ignore[operator]
    assert waiting[STALENESS] < held[STALENESS] < free[STALENESS]  # type: ignore[operator]


def test_a_bound_that_nobody_reaches_changes_nothing() -> None:
    _, free, held = explore(Parameters(workers=2, slow=1.0, cv=0.0, ahead=16)).table
    assert held[GRADIENTS] == pytest.approx(free[GRADIENTS])


def test_the_picture_is_timelines_or_staleness() -> None:
    lanes, bars = explore(Parameters()), explore(Parameters(picture=HISTOGRAM))
    panels = {panel.text for panel in lanes.figure.layout.annotations}
    assert {f"<b>{name}</b>" for name in NAMES} <= panels
    assert [bar.name for bar in bars.figure.data if bar.type == "bar"] == list(NAMES)
    assert lanes.table == bars.table


def test_many_workers_are_shown_for_fewer_steps() -> None:
    few, many = (
        explore(replace(Parameters(), workers=workers, slow=1.0, cv=0.0, gradient_mib=0.25)) for workers in (4, 64)
    )
    assert many.figure.layout.xaxis.range[1] < 0.5 * few.figure.layout.xaxis.range[1]
