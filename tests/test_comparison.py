"""Comparing two traces: joins, percentages, and causes that add up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distsim.calibration import Calibration, Exchange
from distsim.comparison import compare
from distsim.errors import InputError
from distsim.examples import NAMES, example
from distsim.simulation import simulate


@pytest.mark.parametrize("name", NAMES)
def test_a_run_equals_itself(name: str) -> None:
    trace = simulate(example(name))
    error = compare(trace, trace).error_pct
    assert (error.step_median, error.total, error.unmatched) == (0.0, 0.0, 0)
    assert set(error.causes.values()) == {0.0}


def test_errors_are_in_percent_of_the_measurement() -> None:
    slow = simulate(
        example("synchronous_ring").replacing(
            {"compute.distribution": "constant", "compute.cv": None, "compute.mean": "100 ms"}
        )
    )
    fast = simulate(
        example("synchronous_ring").replacing(
            {"compute.distribution": "constant", "compute.cv": None, "compute.mean": "50 ms"}
        )
    )
    exchange = slow.updates.time_seconds[0] - 0.1
    error = compare(fast, slow).error_pct
    assert error.step_median == pytest.approx(100 * 0.05 / (0.1 + exchange))
    assert error.total == pytest.approx(100 * 0.05 / (0.1 + exchange))
    other_way = compare(slow, fast).error_pct
    assert other_way.step_median == pytest.approx(100 * 0.05 / (0.05 + exchange))
    assert error.causes["compute"] == pytest.approx(-50 * 0.05)
    assert error.causes["communication"] == pytest.approx(0.0, abs=1e-9)


def test_causes_add_up_to_the_signed_error_of_the_total() -> None:
    measured = simulate(example("backup_server"))
    predicted = simulate(example("backup_server").replacing({"cluster.bandwidth": "2 Gbit/s", "compute.mean": "40 ms"}))
    found = compare(predicted, measured)
    assert sum(found.error_pct.causes.values()) == pytest.approx(predicted.total_seconds - measured.total_seconds)
    assert found.error_pct.causes["compute"] < 0 < found.error_pct.causes["communication"]


def test_steps_that_only_one_run_has_are_counted() -> None:
    longer, shorter = (
        simulate(example("synchronous_ring")),
        simulate(example("synchronous_ring").replacing({"steps": 47})),
    )
    assert compare(longer, shorter).error_pct.unmatched == compare(shorter, longer).error_pct.unmatched == 3
    assert compare(longer, shorter).error_pct.step_median == 0.0


def test_what_does_not_apply_is_none() -> None:
    trace = simulate(example("synchronous_ring"))
    nothing = replace(trace, updates=trace.updates.where(trace.updates.version < 0))
    found = compare(trace, nothing)
    assert (found.error_pct.step_median, found.error_pct.total, found.error_pct.staleness) == (None, None, None)


@pytest.mark.parametrize("changes", [{"cluster.workers": 3}])
def test_traces_of_different_scenarios_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"cluster\.workers of the predicted trace = 4"):
        compare(simulate(example("synchronous_ring")), simulate(example("synchronous_ring").replacing(changes)))
    with pytest.raises(InputError, match=r"policy\.kind of the predicted trace = 'synchronous'"):
        compare(simulate(example("synchronous_ring")), simulate(example("backup_server")))


def test_a_calibrated_prediction_compares_with_the_scenario_it_predicts() -> None:
    exchange = Exchange("ring", 4, 1e9, 1e-4, 0.0, ())
    predicted = simulate(example("synchronous_ring"), Calibration((exchange,)))
    assert compare(predicted, simulate(example("synchronous_ring"))).name == "synchronous-ring"
