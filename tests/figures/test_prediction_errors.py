"""What the figure of prediction errors would draw: both values, the error of each, and how far repeats reach."""

from __future__ import annotations

import pytest

from distsim.errors import InputError
from distsim.figures import prediction_errors

PREDICTED = {"ring": 66.0, "server": 72.0, "asynchronous": 50.0}
MEASURED = {"ring": [61.0, 60.0, 63.0], "server": 80.0, "asynchronous": [50.0, 50.0]}


def test_both_are_drawn_and_the_error_of_each() -> None:
    predicted, measured, errors = prediction_errors(PREDICTED, MEASURED).figure.data
    assert list(predicted.x) == [66.0, 72.0, 50.0]
    assert list(measured.x) == [61.0, 80.0, 50.0]
    assert (list(measured.error_x.array), list(measured.error_x.arrayminus)) == ([2.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert list(errors.x) == pytest.approx([100 * 5 / 61, -10.0, 0.0])
    of_ring = errors.x[0]
    assert list(errors.error_x.arrayminus) == pytest.approx([of_ring - 100 * 3 / 63, 0.0, 0.0])
    assert list(errors.error_x.array) == pytest.approx([10.0 - of_ring, 0.0, 0.0])


def test_the_error_is_written_beside_each_and_stays_inside() -> None:
    figure = prediction_errors(PREDICTED, MEASURED).figure
    assert [note.text for note in figure.layout.annotations] == ["+8.2 %", "-10 %", "0 %"]
    low, high = figure.layout.xaxis2.range
    assert low < -10
    assert high > 10


def test_times_far_apart_have_a_logarithmic_axis() -> None:
    assert prediction_errors(PREDICTED, MEASURED).figure.layout.xaxis.type is None
    assert prediction_errors({"a": 2.0, "b": 200.0}, {"a": 2.0, "b": 200.0}).figure.layout.xaxis.type == "log"


def test_the_sentence_and_the_table_tell_the_errors() -> None:
    shown = prediction_errors(PREDICTED, MEASURED, unit="s", quantity="total")
    assert shown.summary == (
        "Of 3 predictions of the total, server is the furthest off: 10 % below the measured 80 s. "
        "Half are within 8.2 %."
    )
    assert [row["error"] for row in shown.table] == ["+8.2 %", "-10 %", "0 %"]
    assert [row["largest (s)"] for row in shown.table] == [63.0, 80.0, 50.0]
    one = prediction_errors({"ring": 66.0}, {"ring": [60.0, 62.0]}).summary
    assert one == "The prediction of the step time (ring) is 8.2 % above the measured 61 ms."
    assert "nothing is drawn" in prediction_errors({}, {}).summary


@pytest.mark.parametrize(
    ("predicted", "measured", "match"),
    [({"a": 1.0}, {"b": 1.0}, "use the same names"), ({"a": 0.0}, {"a": 1.0}, "must be above 0"),
     ({"a": float("nan")}, {"a": 1.0}, "must be a finite number"), ({"a": 1.0}, {"a": []}, "must be a finite number")],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(
    predicted: dict[str, float], measured: dict[str, list[float]], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        prediction_errors(predicted, measured)
