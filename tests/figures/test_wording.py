"""How far off a prediction is, in words: its side, its digits, and where it is as good as none."""

from __future__ import annotations

import pytest

from distsim.figures.captioned import table_html
from distsim.figures.wording import above_or_below, counted, signed


@pytest.mark.parametrize("predicted", [3.945, 3.945 * (1.0 + 1e-15), 3.945 * (1.0 - 1e-15), 3.945 * (1.0 + 9e-9)])
def test_a_rounding_has_no_side(predicted: float) -> None:
    assert above_or_below(predicted, 3.945) == "0 % off"


def test_what_is_small_but_no_rounding_keeps_its_side() -> None:
    assert above_or_below(100.001, 100.0) == "0.001 % above"
    assert above_or_below(-99.999, -100.0) == "0.001 % below"


def test_what_is_very_far_off_is_short() -> None:
    assert above_or_below(1e300, 76.0) == "1.32e+298 times as large"
    assert above_or_below(1e-300, 76.0) == "100 % below"
    assert above_or_below(1000.0, 1.0) == "99900 % above"
    assert signed(-1.3e300, "%") == "-1.3e+300 %"
    assert signed(999_999.0, "ms") == "+999999 ms"


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([86.448, 7.5, 0.0], ["86.45", "7.50", "0.00"]), ([200.0, 150.3006, None], ["200.0", "150.3", "–"]),
        ([1.0, 0.0314], ["1.000", "0.031"]), ([1234.5, 3.2], ["1,234.5", "3.2"]), ([3, 12], ["3", "12"]),
    ],
)  # fmt: skip
def test_numbers_of_a_column_have_the_same_decimals(column: list[float | None], texts: list[str]) -> None:
    rows = [{"run": str(place), "value": value} for place, value in enumerate(column)]
    assert [part.split("<")[0] for part in table_html(rows).split("<td>")[1:]] == texts


def test_numbers_very_far_apart_keep_their_own_digits() -> None:
    assert "<td>0.002</td>" in table_html([{"run": "a", "value": 0.002}, {"run": "b", "value": 1e6}])


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(count, "process") for count in (0, 1, 2)] == ["0 processes", "1 process", "2 processes"]
