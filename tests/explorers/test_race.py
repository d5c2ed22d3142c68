"""The explorer of error against run time: its paces and floors, its sentence, its figure, its controls."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.explorers.race import QUADRATIC, Parameters, explore, explorer, scenarios
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.metrics import mean_staleness
from distsim.simulation import simulate

PACE, BY_FORMULA, STALENESS = "updates per s", "by formula", "mean staleness"
FIRST, LAST, FLOOR = "error at 8 s", "error from 60 s", "floor if not stale"


@pytest.mark.parametrize("parameters", [Parameters(), Parameters(workers=12, first=3, cv=0.4)])
def test_paces_are_those_of_the_formulas(parameters: Parameters) -> None:
    table = explore(parameters).table
    for row in (table[0], table[1], table[3]):
        # Times between updates have about the spread of a worker's own; 25 updates or more.
        assert row[PACE] == pytest.approx(row[BY_FORMULA], rel=4 * parameters.cv / np.sqrt(80 * row[BY_FORMULA]))
    assert table[2][BY_FORMULA] is None
    assert table[0][PACE] < table[1][PACE] < table[2][PACE] < table[3][PACE]


def test_the_rows_are_what_a_replay_of_each_scenario_finds() -> None:
    parameters = Parameters(rate=0.05, ahead=1)
    for scenario, row in zip(scenarios(parameters), explore(parameters).table, strict=True):
        trace = simulate(scenario)
        curve = replay(trace, QUADRATIC, Sgd(0.05), points=120)
        window = (curve.seconds >= 60.0) & (curve.seconds <= 80.0)
        assert row[FIRST] == curve.loss_at(8.0)
        assert row[LAST] == pytest.approx(curve.loss[window].mean())
        assert row[STALENESS] == mean_staleness(trace)


def test_fresh_gradients_come_to_their_floor() -> None:
    """On average over seeds: the errors of one run are far from independent."""
    rows = [explore(Parameters(rate=0.2, first=4, batch=4, seed=seed)).table[1] for seed in range(6)]
    mean = np.mean([row[LAST] for row in rows])
    error = np.std([row[LAST] for row in rows], ddof=1) / np.sqrt(6)
    assert abs(mean - rows[0][FLOOR]) < 4 * error
    assert rows[0][FLOOR] == pytest.approx(explore(Parameters(rate=0.2, first=2, batch=8)).table[1][FLOOR])


def test_first_of_all_is_synchronous() -> None:
    synchronous, same, *_ = explore(Parameters(first=8)).table
    for column in (PACE, STALENESS, FIRST, LAST, FLOOR):
        assert synchronous[column] == same[column], column


def test_the_figure_has_a_line_for_each_policy_and_ends_with_the_race() -> None:
    figure = explore(Parameters()).figure
    lines = {drawn.name: drawn for drawn in figure.data if drawn.mode == "lines" and drawn.name}
    for name in ("synchronous", "first 4 of 8", "at most 2 ahead", "asynchronous"):
        assert 70.0 < max(lines[name].x) <= 80.0


def test_the_sentence_names_who_is_ahead_when() -> None:
    shown = explore(Parameters())
    early, late = (min(shown.table, key=lambda row: row[column]) for column in (FIRST, LAST))
    assert (early["policy"], late["policy"]) == ("asynchronous", "first 4 of 8")
    times = shown.table[3][PACE] / shown.table[0][PACE]
    assert shown.summary == (
        f"After 8 s, the smallest error is {early[FIRST]:.2g} (asynchronous); from 60 s on, it is {late[LAST]:.2g} "
        f"(first 4 of 8). Asynchronous training makes {times:.1f} times as many updates as synchronous."
    )


def test_who_is_equally_far_is_named_too() -> None:
    shown = explore(Parameters(ahead=16))
    assert shown.table[2][FIRST] == shown.table[3][FIRST]
    assert "(at most 16 ahead and asynchronous); from 60 s on" in shown.summary


def test_a_rate_that_staleness_does_not_bear_is_told() -> None:
    shown = explore(Parameters(workers=12, first=8, rate=0.3, ahead=0))
    assert shown.table[2][LAST] is None
    assert "The error of at most 0 ahead grows without bound" in shown.summary
    assert any(drawn.name == "diverges" for drawn in shown.figure.data)


def test_more_than_all_workers_are_not_to_be_waited_for() -> None:
    with pytest.raises(InputError, match="gradients an update waits for = 9: must be at most the 8 workers"):
        explore(Parameters(first=9))
    view = explorer()
    assert view.shown is not None
    kept = view.shown
    view.controls["first"].value = 12
    assert "take 8 or fewer, or more workers" in view.message.value
    assert view.shown is kept
    view.controls["workers"].value = 12
    assert view.message.value == ""
    assert view.shown.table[1]["policy"] == "first 12 of 12"
