"""Sharpness against known curvatures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from distsim.learning.digits import digits
from distsim.learning.quadratic import Quadratic
from distsim.learning.sharpness import sharpness
from distsim.learning.torch_model import TorchModel
from tests.learning.logistic import Logistic


def test_a_quadratic_s_is_its_steepest_curvature() -> None:
    quadratic = Quadratic(steepest=2.5)
    for parameters in (np.zeros(20), quadratic.start(0)):
        assert sharpness(quadratic, parameters) == pytest.approx(2.5, rel=1e-3)


def test_logistic_regression_s_is_the_hessian_s_largest_eigenvalue() -> None:
    """At 0 every class is as likely as the others, and the Hessian is (I - 1/10) / 10 times the mean of x x^T."""
    pixels = digits()[0].pixels.astype(float)
    inputs = np.hstack([pixels, np.ones((len(pixels), 1))])
    expected = np.linalg.eigvalsh(inputs.T @ inputs / len(inputs))[-1] / 10
    assert sharpness(Logistic(), Logistic().start(0)) == pytest.approx(expected, rel=1e-4)


def test_float32_finds_what_float64_finds() -> None:
    found = [
        sharpness(TorchModel.of("mlp", dtype), TorchModel.of("mlp", dtype).start(1))
        for dtype in (torch.float32, torch.float64)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.01)
