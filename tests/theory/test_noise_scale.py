"""The noise scale against quadratics: the best progress of an update, and lengths of gradients that are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from distsim import InputError
from distsim.learning.quadratic import Quadratic
from distsim.theory.noise_scale import best_rate, estimated, fitted, updates_to_target


@pytest.mark.parametrize("batch", [1, 7, 40, 1000])
def test_the_best_step_of_a_noisy_gradient_makes_this_share_of_the_progress(batch: int) -> None:
    """On a loss h |x|^2 / 2, found by trying rates: a step's mean progress is r g - r^2 h (g + n) / 2.

    g is |G|^2 and n the noise of the mean gradient. S_min steps become S_min (1 + B_noise / B) if each makes
    1 / (1 + B_noise / B) of the progress.
    """
    curvature, square, variance = 0.5, 3.0, 60.0
    rates = np.linspace(0.0, 2.0 / curvature, 400_001)
    progress = [rates * square - rates**2 * curvature * (square + noise) / 2 for noise in (variance / batch, 0.0)]
    best, least = (found.max() for found in progress)
    rate, largest = (rates[found.argmax()] for found in progress)
    assert rate == pytest.approx(best_rate(largest, variance / square, batch), abs=2 * rates[1])
    assert least / best == pytest.approx(updates_to_target(1.0, variance / square, batch), rel=1e-6)


def test_a_fit_finds_what_made_the_updates_and_is_between_noisy_ones() -> None:
    batches = np.array([2, 8, 32, 128, 512])
    true = updates_to_target(45.0, 20.0, batches)
    assert fitted(batches, true) == pytest.approx((45.0, 20.0))
    noise = np.random.default_rng(0).normal(0.0, 0.05, (400, len(batches)))
    found = np.array([fitted(batches, true * (1.0 + row)) for row in noise])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(noise))
    assert (abs(found.mean(axis=0) - [45.0, 20.0]) < 4 * error + [0.3, 0.3]).all()


def test_no_other_curve_is_nearer_by_relative_distance() -> None:
    batches, updates = np.array([2, 8, 32, 512]), np.array([345, 125, 65, 45])
    least, scale = fitted(batches, updates)

    def distance(least: float, scale: float) -> float:
        return float(((updates_to_target(least, scale, batches) / updates - 1.0) ** 2).sum())

    for factor in (0.99, 1.01):
        assert distance(least, scale) < min(distance(factor * least, scale), distance(least, factor * scale))


def test_lengths_of_gradients_tell_the_noise_scale() -> None:
    quadratic = Quadratic(samples=2**14)
    place = quadratic.start(0)
    square = float((quadratic.gradient(place)[1] ** 2).sum())
    variance = float(sum(quadratic.gradient(place, np.array([k]))[1] @ quadratic.gradient(place, np.array([k]))[1]
                         for k in range(quadratic.samples)) / quadratic.samples - square)  # fmt: skip
    drawn = np.random.default_rng(1)

    def squares(batch: int) -> list[float]:
        lots = (drawn.integers(quadratic.samples, size=batch) for _ in range(3000))
        return [float((quadratic.gradient(place, lot)[1] ** 2).sum()) for lot in lots]

    repeats = [estimated(2, squares(2)[part::10], 32, squares(32)[part::10]) for part in range(10)]
    error = np.std(repeats, ddof=1) / np.sqrt(len(repeats))
    assert abs(np.mean(repeats) - variance / square) < 4 * error
    assert error < 0.05 * variance / square


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((8, 5.0, 8, 1.5), "large_batch"),
        ((0, 5.0, 8, 1.5), "small_batch"),
        ((8, 16.0, 64, 1.5), "hidden by noise"),
    ],
)
def test_lengths_that_tell_nothing_are_refused(arguments: tuple[int, float, int, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        estimated(*arguments)


def test_gradients_without_noise_have_none() -> None:
    assert estimated(8, 1.0, 64, 1.0) == 0.0
    assert estimated(8, 0.9, 64, 1.0) == 0.0, "less than none is chance"


@pytest.mark.parametrize(
    ("batches", "updates"), [([8, 8], [10, 12]), ([8, 16], [10, 12]), ([8, 16], [10, 4]), ([0, 16], [10, 4])]
)
def test_updates_that_no_curve_fits_are_refused(batches: list[int], updates: list[int]) -> None:
    with pytest.raises(InputError):
        fitted(batches, updates)


def test_a_curve_asks_for_updates_and_batches() -> None:
    for arguments in ((0.0, 1.0, 8), (1.0, -1.0, 8), (1.0, 1.0, 0)):
        with pytest.raises(InputError):
            updates_to_target(*arguments)
        with pytest.raises(InputError):
            best_rate(*arguments)
