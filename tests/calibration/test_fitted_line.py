"""The fit: known latency and bandwidth are found again, intervals cover them, and what is no line is called poor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from distsim.calibration.fitted_line import fit_line

LATENCY, PER_BYTE = 3e-4, 8e-10
SIZES = (1e4, 1e5, 1e6, 4e6)
ROWS = [(2.0, 2.0 * size) for size in SIZES]
EXACT = [2.0 * (LATENCY + PER_BYTE * size) for size in SIZES]


def noisy(seed: int, spread: float = 0.3, repeats: int = 25) -> list[np.ndarray]:
    """Times whose median is the exact one."""
    generator = np.random.default_rng(seed)
    return [exact * generator.lognormal(0.0, spread, repeats) for exact in EXACT]


def test_exact_times_give_their_line() -> None:
    line = fit_line(ROWS, [[exact] * 5 for exact in EXACT])
    assert line.fixed_seconds == pytest.approx(LATENCY, rel=1e-9)
    assert line.unit_seconds == pytest.approx(PER_BYTE, rel=1e-9)
    assert line.fixed_interval == pytest.approx((LATENCY, LATENCY), rel=1e-9)
    assert line.r_squared == pytest.approx(1.0)
    assert line.largest_miss == pytest.approx(0.0, abs=1e-9)
    assert not line.poor


def test_intervals_cover_what_is_true_as_often_as_they_say() -> None:
    """95 %, less 4 standard errors of 300 tries: 90 %; and not always, or they would say nothing."""
    tries = 300
    least = 0.95 - 4 * math.sqrt(0.95 * 0.05 / tries)
    lines = [fit_line(ROWS, noisy(seed)) for seed in range(tries)]
    fixed = np.mean([line.fixed_interval[0] <= LATENCY <= line.fixed_interval[1] for line in lines])
    unit = np.mean([line.unit_interval[0] <= PER_BYTE <= line.unit_interval[1] for line in lines])
    assert least <= fixed < 1.0
    assert least <= unit < 1.0
    widths = [line.unit_interval[1] - line.unit_interval[0] for line in lines]
    assert np.mean(widths) < PER_BYTE


def test_more_repeats_make_intervals_narrower() -> None:
    few, many = (fit_line(ROWS, noisy(1, repeats=repeats)).unit_interval for repeats in (10, 1000))
    assert many[1] - many[0] < 0.4 * (few[1] - few[0])


def test_outliers_do_not_move_the_line() -> None:
    samples = [np.append(sample, [50 * exact] * 5) for sample, exact in zip(noisy(2, 0.02), EXACT, strict=True)]
    line = fit_line(ROWS, samples)
    assert line.unit_seconds == pytest.approx(PER_BYTE, rel=0.05)
    assert line.fixed_seconds == pytest.approx(LATENCY, rel=0.05)


def test_small_and_large_times_count_alike() -> None:
    """A miss of 20 % at the small end is not lost beside a large time's seconds."""
    times = list(EXACT)
    times[0] *= 1.2
    line = fit_line(ROWS, [[time] for time in times])
    assert line.fixed_seconds > 1.08 * LATENCY


@pytest.mark.parametrize(
    ("times", "fixed", "unit"),
    [
        ((2.0, 2.0, 2.0), 2.0, 0.0),
        ((1.0, 2.0, 4.0), 0.0, 1.0),
        ((3.0, 2.0, 1.0), None, 0.0),
        ((0.5, 2.0, 7.0), 0.0, None),
    ],
    ids=["size costs nothing", "no latency", "falling", "steeper than any"],
)
def test_neither_part_is_negative(times: tuple[float, ...], fixed: float | None, unit: float | None) -> None:
    line = fit_line([(1, 1), (1, 2), (1, 4)], [[time] for time in times])
    for found, expected in ((line.fixed_seconds, fixed), (line.unit_seconds, unit)):
        assert found >= 0.0
        if expected is not None:
            assert found == pytest.approx(expected, abs=1e-12)
    assert line.fixed_seconds + line.unit_seconds > 0.0


def test_what_is_no_line_is_called_poor() -> None:
    knee = [*EXACT[:-1], 3 * EXACT[-1]]
    line = fit_line(ROWS, [[time] for time in knee])
    assert line.poor
    assert line.largest_miss > 0.25
    assert line.r_squared < 0.9


def test_the_same_times_give_the_same_intervals() -> None:
    assert fit_line(ROWS, noisy(3)) == fit_line(ROWS, noisy(3))
