"""A race as drawn: medians and bands over seeds, floors, and the moment from which on one line stays below another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.figures import race
from distsim.learning.curve import Curve

SECONDS = np.arange(401.0) / 2.0


def curve(floor: float, half_life: float, factor: float = 1.0) -> Curve:
    """A loss that falls from 4 to a floor, on a clock of 200 s."""
    found = factor * (floor + (4.0 - floor) * 2.0 ** (-SECONDS / half_life))
    update = np.arange(len(SECONDS))
    return Curve(
        update=update, samples=update, seconds=SECONDS, loss=found, accuracy=np.full(len(found), np.nan),
        batch_loss=found[1:], update_samples=np.ones(len(update) - 1, dtype=int), parameters=np.zeros(1),
    )  # fmt: skip


def runs(floor: float, half_life: float) -> list[Curve]:
    return [curve(floor, half_life, factor) for factor in (0.9, 0.95, 1.0, 1.05, 1.1)]


FAST, SLOW = runs(0.1, 2.0), runs(0.01, 10.0)


def trace(figure: Any, name: str) -> Any:
    (found,) = [one for one in figure.data if one.name == name]
    return found


def test_a_line_is_the_median_and_its_band_the_middle_half() -> None:
    figure = race({"fast": FAST, "slow": SLOW}).figure
    line, band = trace(figure, "fast"), trace(figure, "middle half of fast")
    middle = np.array([curve(0.1, 2.0).loss_at(moment) for moment in line.x])
    assert line.x[0] == SECONDS[1]
    assert line.x[-1] == SECONDS[-1]
    assert np.allclose(line.y, middle, rtol=0.1)
    high, low = np.split(np.asarray(band.y), 2)
    assert np.allclose(high, 1.05 * np.asarray(line.y))
    assert np.allclose(low[::-1], 0.95 * np.asarray(line.y))


def test_a_loss_is_the_mean_since_the_moment_before() -> None:
    rough = curve(0.1, 2.0)
    flat = np.where(rough.update % 2, 1.0, 3.0)
    shown = race({"flat": [Curve(**{**vars(rough), "loss": flat})]})
    line = trace(shown.figure, "flat")
    assert np.allclose(line.y[-5:], 2.0, atol=0.1)
    assert "middle half of flat" not in [one.name for one in shown.figure.data]


def test_the_one_with_the_lower_floor_overtakes_once_and_for_good() -> None:
    shown = race({"slow": SLOW, "fast": FAST}, {"slow": 0.01, "fast": 0.1})
    slow, fast = (curve(0.01, 10.0).loss, curve(0.1, 2.0).loss)
    crossing = float(SECONDS[np.flatnonzero(slow >= fast)[-1]])
    row, leader = shown.table
    assert row["overtakes fast at (s)"] == pytest.approx(crossing, rel=0.1)
    assert leader["overtakes fast at (s)"] is None
    mark = trace(shown.figure, "slow overtakes fast")
    assert mark.x[0] == row["overtakes fast at (s)"]
    assert shown.summary == f"Fast leads first. Overtaken by slow at {mark.x[0]:.3g} s."
    assert [set(trace(shown.figure, f"floor of {name}").y) for name in ("slow", "fast")] == [{0.01}, {0.1}]


def test_lines_that_end_within_their_bands_do_not_overtake() -> None:
    shown = race({"fast": FAST, "like it": runs(0.099, 3.0)})
    assert shown.summary == "Fast leads first. No other run overtakes it within 200 s."
    assert race({"alone": FAST}).summary == "Alone leads first."


def test_a_leader_is_named_even_where_no_loss_is_halved() -> None:
    flat = Curve(**{**vars(FAST[0]), "loss": np.full(len(SECONDS), 3.0)})
    assert race({"flat": [flat]}).summary == "Flat leads first."


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(InputError, match="there is nothing to draw"):
        race({})
    with pytest.raises(InputError, match="there is nothing to draw"):
        race({"fast": FAST, "none": []})
    short = Curve(**{**vars(FAST[0]), "seconds": np.zeros(len(SECONDS))})
    with pytest.raises(InputError, match="several times"):
        race({"short": [short]})
