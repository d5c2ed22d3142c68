"""What the four stages of a chapter would draw: bars, error bars, the measurement through them."""

from __future__ import annotations

import pytest

from distsim.errors import InputError
from distsim.figures import guess_formula_simulation_measurement

REPEATS = [91.8, 92.4, 95.0]


def test_four_stages_keep_their_order_and_the_measurement_is_a_line() -> None:
    shown = guess_formula_simulation_measurement(60, 81.5, 92.0, 92.4, "ms")
    assert [bar.name for bar in shown.figure.data] == ["guess", "formula", "simulation", "measurement"]
    assert len({(bar.marker.color, bar.marker.pattern.shape) for bar in shown.figure.data}) == 4
    assert shown.figure.layout.shapes[0].x0 == 92.4
    assert shown.figure.layout.xaxis.title.text == "step time (ms)"
    assert [row["error"] for row in shown.table] == ["-35.1 %", "-11.8 %", "-0.43 %", "–"]


def test_stages_that_are_not_there_yet_say_so() -> None:
    shown = guess_formula_simulation_measurement(60.0, None, None, None, "ms")
    assert [note.text for note in shown.figure.layout.annotations] == ["60 ms", "not yet", "not yet", "not yet"]
    assert shown.summary == "Not measured yet; step time: guess 60 ms."
    assert not shown.figure.layout.shapes
    assert guess_formula_simulation_measurement(None, None, None, None, "ms").summary.endswith("no guess yet.")


def test_repeats_are_their_median_with_error_bars_and_a_band() -> None:
    shown = guess_formula_simulation_measurement(60.0, simulation=[90.0, 93.0, 91.0], measurement=REPEATS)
    simulation, measurement = shown.figure.data[1:]  # what was not computed is left out
    assert (simulation.x[0], measurement.x[0]) == (91.0, 92.4)
    assert (simulation.error_x.array[0], simulation.error_x.arrayminus[0]) == (2.0, 1.0)
    assert shown.figure.data[0].error_x.array is None
    line, band = shown.figure.layout.shapes
    assert (line.x0, band.x0, band.x1) == (92.4, 91.8, 95.0)
    assert [(row["least"], row["largest"], row["repeats"]) for row in shown.table] == [
        (60.0, 60.0, 1), (90.0, 93.0, 3), (91.8, 95.0, 3),
    ]  # fmt: skip


def test_the_sentence_says_whether_a_prediction_is_within_the_measurements_reach() -> None:
    summary = guess_formula_simulation_measurement(60.0, 94.0, 91.0, REPEATS).summary
    assert summary == (
        "Measured: a step time of 92.4 ms, 91.8 to 95; the simulation is 1.5 % below, "
        "the formula is 1.7 % above, within the measured range, the guess is 35 % below."
    )
    assert "reach" not in guess_formula_simulation_measurement(60.0, 92.4, 92.4, 92.4).summary


def test_labels_stand_beyond_the_error_bars_and_inside_the_axis() -> None:
    figure = guess_formula_simulation_measurement(simulation=[10.0, 20.0, 200.0], measurement=20.0).figure
    label = figure.layout.annotations[0]
    assert label.x == 200.0
    assert label.text == "20 ms, 10 to 200 (0 %)"
    # In a panel of 500 pixels, 22 letters of at least 6 pixels end within the axis.
    assert label.x / figure.layout.xaxis.range[1] + 22 * 6 / 500 < 1.0


def test_one_of_a_unit_is_told_in_the_singular() -> None:
    told = [
        guess_formula_simulation_measurement(1.0, unit=unit).figure.layout.annotations[0].text
        for unit in ("updates", "ms", "times", "images/s", "s", "%")
    ]
    assert told == ["1 update", "1 ms", "1 times", "1 images/s", "1 s", "1 %"]


def test_what_is_missing_is_not_yet_there_until_the_measurement_is() -> None:
    before = guess_formula_simulation_measurement(1.0, formula=2.0).figure
    assert [note.text for note in before.layout.annotations] == ["1 ms", "2 ms", "not yet", "not yet"]
    after = guess_formula_simulation_measurement(1.0, measurement=2.0).figure
    assert list(after.layout.yaxis.categoryarray) == ["guess", "measurement"]


@pytest.mark.parametrize("wrong", [[], float("nan"), [1.0, float("inf")]])
def test_what_is_no_number_is_refused(wrong: float | list[float]) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        guess_formula_simulation_measurement(formula=wrong)


def test_errors_above_a_hundred_percent_are_written_out() -> None:
    shown = guess_formula_simulation_measurement(guess=3.0, measurement=1.387, unit="times", quantity="speed-up")
    assert shown.summary.endswith("the guess is 116 % above.")


def test_the_article_fits_the_quantity() -> None:
    for quantity, words in (("error of the step", "an error of the step of 2 %"), ("step time", "a step time of 2 %")):
        assert guess_formula_simulation_measurement(measurement=2.0, unit="%", quantity=quantity).summary == (
            f"Measured: {words}."
        )


def test_what_others_report_is_not_called_a_measurement() -> None:
    shown = guess_formula_simulation_measurement(5.0, 5.8, None, [3.9, 4.3], "times", "speed-up", reported=True)
    assert shown.summary.startswith("Reported: a speed-up of 4.1 times")
    assert [row["stage"] for row in shown.table] == ["guess", "formula", "reported"]
    assert list(shown.figure.layout.yaxis.categoryarray) == ["guess", "formula", "reported"]
    assert "easure" not in str(shown.figure) + shown.summary
    assert shown.table[1]["error"] == "+41.5 %"
