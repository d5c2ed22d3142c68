"""The mean loss of noisy descent, and the largest rate of a late one, against the recursions that they belong to."""

from __future__ import annotations

import numpy as np
import pytest

from distsim import InputError
from distsim.theory.descent import largest_stale_rate, quadratic_floor, quadratic_losses


@pytest.mark.parametrize(("rate", "batch"), [(0.05, 1), (0.3, 4), (1.5, 16)])
def test_it_is_where_the_variance_settles(rate: float, batch: int) -> None:
    curvature, noise = np.array([0.1, 0.5, 1.2]), np.array([2.0, 0.3, 1.0])
    variance = np.zeros(3)
    for _ in range(20000):
        variance = (1 - rate * curvature) ** 2 * variance + rate**2 * noise / batch
    assert quadratic_floor(curvature, noise, rate, batch) == pytest.approx((curvature * variance / 2).sum(), rel=1e-12)


@pytest.mark.parametrize(("rate", "batch"), [(0.05, 1), (0.3, 4), (1.5, 16)])
def test_the_mean_loss_follows_the_second_moments(rate: float, batch: int) -> None:
    curvature, noise = np.array([0.1, 0.5, 1.2]), np.array([2.0, 0.3, 1.0])
    squares, losses = np.full(3, 1.7**2), []
    for _ in range(51):
        losses.append((curvature * squares / 2).sum())
        squares = (1 - rate * curvature) ** 2 * squares + rate**2 * noise / batch
    found = quadratic_losses(curvature, noise, rate, batch, distance=1.7, updates=50)
    np.testing.assert_allclose(found, losses, rtol=1e-12)


def test_a_rate_that_diverges_has_none() -> None:
    with pytest.raises(InputError, match="above 0"):
        quadratic_floor([1.0], [1.0], rate=2.0, batch=1)


@pytest.mark.parametrize("staleness", [0, 1, 4, 15, 100])
def test_at_the_largest_rate_a_late_descent_neither_rests_nor_grows(staleness: int) -> None:
    """By the roots of its characteristic polynomial, of which the largest is as large as 1."""
    curvature = 3.0
    rate = largest_stale_rate(staleness, curvature)

    def largest_root(rate: float) -> float:
        """Of z^(k + 1) - z^k + rate h."""
        polynomial = np.array([1.0, -1.0] + [0.0] * staleness)
        polynomial[-1] += rate * curvature
        return float(np.abs(np.roots(polynomial)).max())

    assert largest_root(rate) == pytest.approx(1.0, abs=1e-9)
    assert largest_root(0.99 * rate) < 1.0 < largest_root(1.01 * rate)


def test_a_late_descent_asks_for_a_curvature_and_whole_updates() -> None:
    with pytest.raises(InputError, match="curvature"):
        largest_stale_rate(1, curvature=0.0)
    with pytest.raises(InputError, match="staleness"):
        largest_stale_rate(-1, curvature=1.0)
