"""The floor of noisy descent, against the recursion that it is the limit of."""

from __future__ import annotations

import numpy as np
import pytest

from distsim import InputError
from distsim.theory.descent import quadratic_floor


@pytest.mark.parametrize(("rate", "batch"), [(0.05, 1), (0.3, 4), (1.5, 16)])
def test_it_is_where_the_variance_settles(rate: float, batch: int) -> None:
    curvature, noise = np.array([0.1, 0.5, 1.2]), np.array([2.0, 0.3, 1.0])
    variance = np.zeros(3)
    for _ in range(20000):
        variance = (1 - rate * curvature) ** 2 * variance + rate**2 * noise / batch
    assert quadratic_floor(curvature, noise, rate, batch) == pytest.approx((curvature * variance / 2).sum(), rel=1e-12)


def test_a_rate_that_diverges_has_none() -> None:
    with pytest.raises(InputError, match="above 0"):
        quadratic_floor([1.0], [1.0], rate=2.0, batch=1)
