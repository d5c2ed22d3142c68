"""The explorer of failures: its runs against simulated traces, its sentence, its figure, its controls."""

from __future__ import annotations

import pytest

from distsim.errors import InputError
from distsim.explorers.failures import Parameters, explore, explorer, scenarios
from distsim.metrics import goodput, summary
from distsim.simulation import simulate
from distsim.theory.checkpointing import best_interval_seconds
from distsim.theory.checkpointing import goodput as expected_goodput

RUNS = "runs, mean and 95 % interval"
FEW = Parameters(workers=3, mean_time_between_days=1.0, interval_minutes=45.0, seed=4)


def test_its_runs_are_those_that_the_scenario_simulates() -> None:
    (scenario,) = scenarios(FEW)
    traces = [simulate(scenario.replacing({"seed": seed})) for seed in range(4, 10)]
    assert sum(summary(trace).failures or 0 for trace in traces) > 10
    shown = explore(FEW)
    assert shown.table[0]["mean of the runs (%)"] == pytest.approx(
        100 * sum(goodput(trace) for trace in traces) / len(traces)
    )


def test_formula_and_runs_agree_within_their_interval() -> None:
    chosen, best = explore(Parameters(interval_minutes=120.0)).table[:2]
    for row in (chosen, best):
        error = (row["to (%)"] - row["mean of the runs (%)"]) / 2.57  # Student's factor for six runs
        assert abs(row["mean of the runs (%)"] - row["goodput, formula (%)"]) < 4 * error
    expected = 100 * expected_goodput(7200.0, 60.0, 300.0, 10 * 86400 / 64)
    assert chosen["goodput, formula (%)"] == pytest.approx(expected)


def test_runs_are_drawn_at_the_chosen_interval_the_best_and_beside_it() -> None:
    shown = explore(Parameters(interval_minutes=5.0))
    (drawn,) = [trace for trace in shown.figure.data if trace.name == RUNS]
    best = best_interval_seconds(60.0, 10 * 86400 / 64) / 60
    assert list(drawn.x) == pytest.approx([4.0, 5.0, best, 103.0])
    assert max(drawn.y) == drawn.y[2]


def test_the_sentence_tells_both_intervals() -> None:
    view = explorer()
    view.controls["interval_minutes"].value = 120.0
    assert view.shown is not None
    chosen, best = view.shown.table[:2]
    text = view.shown.summary
    assert text.startswith("A checkpoint every 120 min costs 60 s, and one of 64 workers fails every ")
    assert f"{chosen['goodput, formula (%)']:.1f} % of the time is useful work" in text
    assert f"({chosen['mean of the runs (%)']:.1f} % in 6 runs" in text
    assert text.endswith(f"The best interval is 20.6 min, with {best['goodput, formula (%)']:.1f} %.")
    assert "useful work between checkpoints from 60 to 120: chosen: length (min) 60 → 120" in view.changed.value


def test_an_interval_that_failures_hardly_let_pass_is_refused_and_heals() -> None:
    with pytest.raises(InputError, match=r"a worker fails every 22.5 min. Cure: save more often \(every \d"):
        explore(Parameters(mean_time_between_days=1.0, interval_minutes=120.0))
    view = explorer()
    assert view.shown is not None
    view.controls["interval_minutes"].value = 480.0
    kept = view.shown
    view.controls["mean_time_between_days"].value = 1.0
    assert "minutes between checkpoints = 480.0: hardly lets a run" in view.message.value
    assert view.shown is kept
    view.controls["interval_minutes"].value = 5.0
    assert view.message.value == ""
    assert view.shown.table[0]["length (min)"] == 5.0


def test_long_times_are_told_in_hours_and_days() -> None:
    text = explore(Parameters(workers=1, interval_minutes=960.0)).summary
    assert text.startswith("A checkpoint every 16 h costs 60 s, and the one worker fails every 10 days")
    assert "every 365 days" in explore(Parameters(workers=1, mean_time_between_days=365.0)).summary
    assert "e+" not in text
