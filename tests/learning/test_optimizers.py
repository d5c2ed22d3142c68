"""Optimizers against torch's, and learning rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from distsim import InputError
from distsim.learning.optimizers import Optimizer, Sgd
from distsim.learning.rates import scaled, warm_up
from tests.learning.adam import Adam

CASES: list[tuple[Optimizer, Any]] = [
    (Sgd(0.1), lambda x: torch.optim.SGD(x, 0.1)),
    (Sgd(0.1, momentum=0.9), lambda x: torch.optim.SGD(x, 0.1, momentum=0.9)),
    (Adam(0.1), lambda x: torch.optim.Adam(x, 0.1)),
    (Adam(0.1, 0.8, 0.99, 1e-3), lambda x: torch.optim.Adam(x, 0.1, (0.8, 0.99), 1e-3)),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_they_step_as_torch_s(case: int) -> None:
    ours, torchs = CASES[case]
    random = np.random.default_rng(case)
    start = random.standard_normal(7)
    expected = torch.tensor(start, requires_grad=True)
    optimizer, descent, found = torchs([expected]), ours.begin(), start
    for _ in range(20):
        gradient = random.standard_normal(7)
        expected.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        before = found.copy()
        after = descent.step(found, gradient)
        assert np.array_equal(found, before)
        found = after
        assert np.allclose(found, expected.detach().numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("make", [Sgd, lambda rate: Sgd(rate, 0.9), Adam])
def test_a_rule_decides_the_rate_of_each_update(make: Any) -> None:
    descent, constant = make(warm_up(0.4, updates=4)).begin(), make(0.4).begin()
    gradient, x = np.array([1.0]), np.array([0.0])
    shares = [descent.step(x, gradient)[0] / constant.step(x, gradient)[0] for _ in range(6)]
    assert shares == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0, 1.0])


@pytest.mark.parametrize("make", [Sgd, lambda rate: Sgd(rate, 0.9), Adam])
def test_float32_stays_float32(make: Any) -> None:
    descent = make(0.1).begin()
    x = np.ones(3, dtype=np.float32)
    for _ in range(3):
        x = descent.step(x, x)
    assert x.dtype == np.float32


def test_rates_scale_with_the_effective_batch() -> None:
    assert [scaled(0.1, 512, 32, rule) for rule in ("constant", "linear", "square_root")] == [0.1, 1.6, 0.4]
    with pytest.raises(InputError, match=r"scaling = 'cubic'.*constant, linear or square_root"):
        scaled(0.1, 512, 32, "cubic")  # type: ignore[arg-type]


def test_warming_up_over_no_updates_is_constant() -> None:
    assert [warm_up(0.3, updates=0)(update) for update in range(3)] == [0.3] * 3
