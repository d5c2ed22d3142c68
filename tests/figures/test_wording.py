"""How far off a prediction is, in words: its side, its digits, and where it is as good as none."""

from __future__ import annotations

import pytest

from distsim.figures.wording import above_or_below


@pytest.mark.parametrize("predicted", [3.945, 3.945 * (1.0 + 1e-15), 3.945 * (1.0 - 1e-15), 3.945 * (1.0 + 9e-9)])
def test_a_rounding_has_no_side(predicted: float) -> None:
    assert above_or_below(predicted, 3.945) == "0 % off"


def test_what_is_small_but_no_rounding_keeps_its_side() -> None:
    assert above_or_below(100.001, 100.0) == "0.001 % above"
    assert above_or_below(-99.999, -100.0) == "0.001 % below"
