"""What the figure of guesses would draw: each as a multiple of the measurement, and how far guesses are off."""

from __future__ import annotations

from typing import Any

import pytest

from distsim.errors import InputError
from distsim.figures import guesses

STEP: dict[str, Any] = {
    "guess": 40.0,
    "formula": 72.0,
    "simulation": [90.0, 79.0, 76.0],
    "measurement": [80.0, 75.0, 90.0],
}
ALONE: dict[str, Any] = {"guess": 8, "formula": None, "measurement": 2.0}


def test_each_stage_is_drawn_as_a_multiple_of_the_median_measurement() -> None:
    figure = guesses({"step (ms)": STEP, "speed-up": ALONE}).figure
    drawn = {trace.name: dict(zip(trace.y, trace.x, strict=True)) for trace in figure.data}
    assert drawn == {
        "guess": {"step (ms)": 0.5, "speed-up": 4.0},
        "formula": {"step (ms)": pytest.approx(0.9)},
        "simulation": {"step (ms)": pytest.approx(79 / 80)},
    }
    told = ["step (ms), guess 50 % below", "speed-up, guess 300 % above"]
    assert [note.text for note in figure.layout.annotations] == told
    low, high = figure.layout.xaxis.range
    assert 10**low < 1 / 4
    assert 10**high > 4


def test_the_sentence_has_the_median_factor_of_each_stage() -> None:
    """Half and twice are off alike, by a factor of 2. Between factors of 2 and 4 the middle is as many times both."""
    shown = guesses({"a": STEP, "b": ALONE})
    assert shown.summary == (
        "Of 2 quantities, the guess was off by a factor of 2.83, the formula by 1.11 and the simulation by 1.01 "
        "in the median. The last guess of the list, b, is 300 % above the measurement."
    )
    assert [row["measurement"] for row in shown.table] == [80.0, 2.0]


def test_from_four_on_the_later_half_is_compared_with_the_earlier() -> None:
    rows = {str(number): {"guess": guess, "measurement": 1.0} for number, guess in enumerate([8, 0.25, 2, 1.0, 1.5])}
    assert guesses(rows).summary.endswith(
        "The first half of the list was guessed with a factor of 5.66, the second with 1.5."
    )
    del rows["0"], rows["1"]
    assert "half" not in guesses(rows).summary


@pytest.mark.parametrize(
    "row", [{"guess": 0.0, "measurement": 2.0}, {"guess": 1.0, "measurement": 0.0}, {"guess": -1.0}]
)
def test_what_has_no_multiple_stands_in_the_table_alone(row: dict[str, Any]) -> None:
    shown = guesses({"a": row})
    assert not shown.figure.data
    assert len(shown.table) == 1
    assert shown.summary == "No guess has been compared with a measurement yet."


def test_a_guess_without_a_factor_is_counted_apart() -> None:
    rows = {"a": {"guess": 2.0, "measurement": 3.0}, "b": {"guess": -3.0, "measurement": 3.0}}
    shown = guesses(rows)
    assert "by a factor of 1.5 in the median. The last guess of the list, a, is 33 % below" in shown.summary
    assert shown.summary.endswith("Of 1 guess there is no factor, since one of the two numbers is not above 0.")
    assert [row["the guess is"] for row in shown.table] == ["33 % below", "200 % below"]


@pytest.mark.parametrize("times", [50.0, 1e5, 1e300])
def test_a_guess_that_is_far_off_stays_inside(times: float) -> None:
    figure = guesses({"a": {"guess": times, "measurement": 1.0}, "b": {"guess": 1 / times, "measurement": 1.0}}).figure
    (drawn,) = figure.data
    low, high = figure.layout.xaxis.range
    assert 10**low < min(drawn.x) < max(drawn.x) < 10**high
    assert list(drawn.customdata) == [times, 1 / times]
    assert len(figure.layout.xaxis.tickvals) <= 7
    assert figure.layout.annotations[0].text == f"a, guess {times:.3g} times"


def test_nothing_and_numbers_that_are_not_finite() -> None:
    assert guesses({}).summary == "No guess has been compared with a measurement yet."
    with pytest.raises(InputError, match="must be a finite number"):
        guesses({"a": {"guess": float("nan"), "measurement": 1.0}})
