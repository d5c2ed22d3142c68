"""What the figure of exchange times would draw: its lines and marks, its sentence and its table."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from distsim.errors import InputError
from distsim.figures import exchange_times

LINE: dict[str, Callable[[float], float]] = {"line": lambda num_bytes: 1e-3 + num_bytes / 1e9}
WAYS = LINE | {"other": lambda num_bytes: 2e-3 + num_bytes / 1e10}
MEASURED = {1e3: 1e-3, 1e5: 1.2e-3, 1e6: 1.6e-3, 1e7: 22e-3}


def test_lines_are_drawn_over_all_sizes() -> None:
    line, other = exchange_times(WAYS, [1e3, 1e6]).figure.data
    assert (line.name, line.x[0], line.x[-1]) == ("line", pytest.approx(1e3), pytest.approx(1e6))
    assert (line.y[0], line.y[-1]) == (pytest.approx(1.001e-3), pytest.approx(2e-3))
    assert line.line.dash != other.line.dash


def test_what_was_fitted_and_what_was_predicted_look_different() -> None:
    _, fitted, predicted = exchange_times(LINE, [1e3, 1e7], MEASURED, fitted=[1e3, 1e6]).figure.data
    assert (list(fitted.x), list(predicted.x)) == ([1e3, 1e6], [1e5, 1e7])
    assert fitted.marker.symbol != predicted.marker.symbol
    assert fitted.marker.color != predicted.marker.color


def test_the_error_is_that_of_the_first_line_where_it_was_not_fitted() -> None:
    shown = exchange_times(WAYS, [1e3, 1e7], MEASURED, fitted=[1e3, 1e6])
    assert shown.summary == (
        "Of 2 sizes that it was not fitted to, the line is farthest from the measured time at 10 MB: 50 % below."
    )
    assert [row["error"] for row in shown.table] == ["+0.1 %", "-8.33 %", "+25 %", "-50 %"]
    assert shown.table[2] == {
        "size": "1 MB", "line (ms)": 2.0, "other (ms)": pytest.approx(2.1), "measured (ms)": pytest.approx(1.6),
        "error": "+25 %",
    }  # fmt: skip


def test_where_all_was_fitted_the_sentence_says_so() -> None:
    shown = exchange_times(LINE, [1e3, 1e7], MEASURED, fitted=list(MEASURED))
    assert shown.summary.startswith("Of 4 sizes that it was fitted to, the line is farthest")


def test_without_measurement_the_fastest_are_told() -> None:
    shown = exchange_times(WAYS, [1e3, 1e7])
    assert shown.summary == "Line is the fastest at 1 kB, with 1 ms; other is the fastest at 10 MB, with 3 ms."
    assert "measured (ms)" not in shown.table[0]


def test_a_curve_that_is_the_fastest_at_both_ends_is_named_once() -> None:
    shown = exchange_times(LINE, [1e3, 1e7])
    assert shown.summary == "Line is the fastest at 1 kB, with 1 ms, and at 10 MB, with 11 ms."


def test_sizes_are_told_as_people_write_them() -> None:
    shown = exchange_times(LINE, [256 * 2**10, 1e6, 102_228_128])
    assert [row["size"] for row in shown.table] == ["256 KiB", "1 MB", "102 MB"]


@pytest.mark.parametrize(
    ("curves", "sizes", "measured", "words"),
    [
        ({}, [1e3, 1e6], {}, "has none to draw"),
        (LINE, [1e3], {}, "at least two"),
        (LINE, [0.0, 1e3], {}, "above 0"),
        ({"free": lambda _: 0.0}, [1e3, 1e6], {}, "give a latency"),
        (LINE, [1e3, 1e6], {1e3: 0.0}, "must be seconds above 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    curves: dict[str, Callable[[float], float]], sizes: list[float], measured: dict[float, float], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        exchange_times(curves, sizes, measured)
