"""The updates of each batch as drawn: means, intervals, the nearest curve, and its two limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.figures import noise_scale
from distsim.statistics import interval
from distsim.theory.noise_scale import updates_to_target

BATCHES = [2, 8, 64, 512]
RUNS = {batch: float(updates_to_target(50.0, 16.0, batch)) * np.array([0.98, 1.0, 1.02]) for batch in BATCHES}


def of_name(name: str, shown: Any) -> Any:
    """The trace of this name."""
    (found,) = [trace for trace in shown.figure.data if trace.name == name]
    return found


def test_means_intervals_and_the_nearest_curve_are_drawn() -> None:
    shown = noise_scale(dict(reversed(RUNS.items())))
    points = of_name("mean of the runs", shown)
    assert list(points.x) == BATCHES
    assert list(points.y) == pytest.approx([450.0, 150.0, 62.5, 51.5625])
    mean, low, high = interval(RUNS[8])
    assert (points.error_y.array[1], points.error_y.arrayminus[1]) == pytest.approx((high - mean, mean - low))
    curve = of_name("nearest curve", shown)
    assert curve.y == pytest.approx(50.0 * (1.0 + 16.0 / np.array(curve.x)))
    assert shown.summary.startswith("The nearest curve has a noise scale of 16 samples and at least 50 updates;")
    assert [row["updates by the curve"] for row in shown.table] == pytest.approx(list(points.y))
    assert [row["samples"] for row in shown.table] == pytest.approx([900.0, 1200.0, 4000.0, 26400.0])


def test_the_limits_meet_at_the_noise_scale() -> None:
    shown = noise_scale(RUNS)
    least, halved = of_name("least updates", shown), of_name("twice the batch, half the updates", shown)
    assert list(least.y) == pytest.approx([50.0, 50.0])
    assert (list(halved.x), list(halved.y)) == (pytest.approx([2.0, 16.0]), pytest.approx([400.0, 50.0]))
    (label,) = shown.figure.layout.annotations
    assert (10**label.x, 10**label.y) == pytest.approx((16.0, 100.0))


def test_where_all_batches_are_larger_than_the_noise_scale_only_the_least_is_a_limit() -> None:
    shown = noise_scale({64: RUNS[64], 512: RUNS[512]})
    assert "twice the batch, half the updates" not in {trace.name for trace in shown.figure.data}
    assert not shown.figure.layout.annotations


def test_one_run_has_no_interval_and_none_reaches_below_one_update() -> None:
    shown = noise_scale({2: [450.0], 512: [1.0, 102.0]})
    assert (shown.table[0]["95 % from"], shown.table[0]["to"]) == (None, None)
    assert shown.table[1]["95 % from"] == 1.0


@pytest.mark.parametrize(
    ("updates", "words"),
    [
        ({}, "two different values"),
        ({8: [100.0]}, "two different values"),
        ({8: [], 16: [3.0]}, "at least one for each batch"),
        ({8: [np.nan], 16: [3.0]}, "numbers above 0"),
        ({8: [10.0], 16: [12.0]}, "fewer as batches grow"),
    ],
)
def test_what_no_curve_fits_is_refused(updates: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        noise_scale(updates)
