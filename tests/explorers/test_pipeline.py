"""The explorer of pipelines: its table against metrics and formulas, its sentence, its figure, its controls."""

from __future__ import annotations

from typing import Literal

import pytest

from distsim.errors import InputError
from distsim.explorers.pipeline import Parameters, explore, explorer, scenarios
from distsim.metrics import worker_seconds
from distsim.simulation import simulate
from distsim.theory.pipeline import bubble_share, equal_stages_step_seconds

STEP, BUBBLES, SPEED = "step, mean (ms)", "bubbles (%)", "speed (samples/s)"
SCHEDULES: tuple[Literal["gpipe", "1f1b"], ...] = ("gpipe", "1f1b")
HELD, MEMORY = "held at most (micro-batches)", "their inputs (MiB)"


@pytest.mark.parametrize("slow", [1.0, 2.5])
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 4), (4, 1), (4, 8), (8, 32)])
def test_gpipe_takes_what_its_formula_says(stages: int, micro_batches: int, eager: bool, slow: float) -> None:
    parameters = Parameters(
        stages=stages, micro_batches=micro_batches, eager=eager, slow=slow, activation_mib=1.0, gbit_per_second=2.0
    )
    simulated, formula, free = explore(parameters).table
    for column in (STEP, BUBBLES, SPEED, HELD, MEMORY):
        assert simulated[column] == pytest.approx(formula[column], rel=1e-9, abs=1e-6), column
    assert free[STEP] <= simulated[STEP] * (1 + 1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_hardly_any_message_both_schedules_take_what_theory_says(schedule: Literal["gpipe", "1f1b"]) -> None:
    parameters = Parameters(schedule=schedule, activation_mib=0.0, sample_ms=10.0)
    simulated, formula, free = explore(parameters).table
    assert free[STEP] == pytest.approx(1e3 * equal_stages_step_seconds(4, 8, 0.04 / 3, 0.08 / 3))
    assert free[BUBBLES] == pytest.approx(100 * bubble_share(4, 8))
    assert simulated[STEP] == pytest.approx(free[STEP], rel=1e-3)
    assert (formula[STEP] is None) is (schedule == "1f1b")


def test_one_f_one_b_holds_as_many_micro_batches_as_there_are_stages() -> None:
    gpipe, other = (explore(Parameters(schedule=kind, micro_batches=16, stages=3)).table for kind in SCHEDULES)
    assert [row[HELD] for row in gpipe] == [16, 16, 16]
    assert [row[HELD] for row in other] == [3, 3, 3]
    assert [gpipe[0][MEMORY], other[0][MEMORY]] == pytest.approx([32 * 0.25, 32 * 0.25 * 3 / 16])


def test_the_simulated_row_is_the_metrics() -> None:
    parameters = Parameters(cv=0.4, slow=1.5, schedule="1f1b")
    row = explore(parameters).table[0]
    trace = simulate(scenarios(parameters)[0])
    assert row[STEP] == pytest.approx(1e3 * trace.total_seconds / 2)
    computes = worker_seconds(trace)["compute"].mean() / trace.total_seconds
    assert row[BUBBLES] == pytest.approx(100 * (1 - computes))
    assert row[SPEED] == pytest.approx(32 * 2 / trace.total_seconds)


def test_the_sentence_has_the_tables_numbers() -> None:
    shown = explore(Parameters(schedule="1f1b"))
    simulated, _, free = shown.table
    assert shown.summary == (
        f"With 1F1B on 4 stages, a batch of 32 samples in 8 micro-batches takes {simulated[STEP]:.3g} ms "
        f"(mean of 2 simulated steps). {simulated[BUBBLES]:.0f} % of this time is bubbles; "
        f"with free messages and equal times it would be {free[BUBBLES]:.0f} %. "
        "A stage holds at most 4 micro-batches, with 4 MiB of inputs."
    )


def test_what_changed_is_told_of_the_simulated_step_alone() -> None:
    view = explorer()
    assert "2 steps are simulated, and the first is drawn" in view.children[0].value
    for control, value in (("micro_batches", 16), ("schedule", "1f1b"), ("stages", 8), ("slow", 2.0)):
        view.controls[control].value = value
        told = view.changed.value
        assert ": simulated: step, mean (ms) " in told
        assert "formula" not in told
        assert len(told.partition(">")[2]) < 200


def test_the_figure_has_a_bar_for_each_micro_batch_on_each_stage() -> None:
    figure = explore(Parameters(stages=3, micro_batches=4)).figure
    for name in ("forward", "backward"):
        (drawn,) = [drawn for drawn in figure.data if drawn.name == name]
        assert sorted(drawn.y) == [0] * 4 + [1] * 4 + [2] * 4


def test_more_micro_batches_than_samples_are_refused_beside_the_controls_and_heal() -> None:
    with pytest.raises(InputError, match="micro-batches = 32: must be at most the 16 samples"):
        explore(Parameters(micro_batches=32, batch=16))
    view = explorer()
    view.controls["batch"].value = 16
    assert view.shown is not None
    kept = view.shown.figure
    view.controls["micro_batches"].value = 32
    assert "take 16 or fewer, or a larger batch" in view.message.value
    assert view.shown.figure is kept
    view.controls["batch"].value = 64
    assert view.message.value == ""
    assert view.shown.table[0][HELD] == 32
