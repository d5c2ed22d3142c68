"""Objectives: gradients against torch and finite differences, a known optimum, accuracy, no torch where none is due."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from distsim.learning.digits import digits
from distsim.learning.objective import Objective
from distsim.learning.problems import problem
from distsim.learning.quadratic import Quadratic
from distsim.learning.sparse import SparseLogistic
from distsim.learning.torch_model import TorchModel
from distsim.workload import Workload
from tests.learning.logistic import Logistic

OBJECTIVES: dict[str, Objective] = {
    "quadratic": Quadratic(samples=500),
    "logistic": Logistic(),
    "sparse": SparseLogistic(samples=500, density=0.05),
    "zipf": SparseLogistic(samples=500, zipf=1.0),
    "mlp": TorchModel.of("mlp", torch.float64),
    "cnn": TorchModel.of("cnn", torch.float64, samples=100),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_is_the_slope_of_the_loss(name: str) -> None:
    objective = OBJECTIVES[name]
    random = np.random.default_rng(1)
    parameters = objective.start(3) + 0.1 * random.standard_normal(len(objective.start(3)))
    direction = random.standard_normal(len(parameters))
    small = 1e-7  # few kinks of ReLU lie so near
    for samples in (None, random.integers(objective.samples, size=7)):
        loss, gradient = objective.gradient(parameters, samples)
        ahead, _ = objective.gradient(parameters + small * direction, samples)
        behind, _ = objective.gradient(parameters - small * direction, samples)
        assert gradient @ direction == pytest.approx((ahead - behind) / (2 * small), rel=1e-4)
        if samples is None:
            assert loss == pytest.approx(objective.loss(parameters), rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_over_all_is_the_mean_over_each(name: str) -> None:
    objective = OBJECTIVES[name]
    parameters = objective.start(3) + 0.05
    each = [objective.gradient(parameters, np.array([sample])) for sample in range(objective.samples)]
    loss, gradient = objective.gradient(parameters)
    assert np.mean([loss for loss, _ in each]) == pytest.approx(loss, rel=1e-9)
    assert np.allclose(np.mean([gradient for _, gradient in each], axis=0), gradient, rtol=1e-8, atol=1e-11)


def test_logistic_regression_has_torch_s_gradient() -> None:
    objective, samples = Logistic(), np.arange(5, 40)
    random = np.random.default_rng(2)
    parameters = random.standard_normal(650)
    weights = torch.tensor(parameters, requires_grad=True)
    pixels, classes = (torch.from_numpy(part[samples]) for part in digits()[0])
    scores = pixels.double() @ weights[:640].view(64, 10) + weights[640:]
    expected = nn.functional.cross_entropy(scores, classes)
    expected.backward()
    loss, gradient = objective.gradient(parameters, samples)
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    assert weights.grad is not None
    assert np.allclose(gradient, weights.grad.numpy(), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_a_network_starts_and_descends_as_the_model_of_real_runs(model: str) -> None:
    network, real = TorchModel.of(model), problem(Workload(model=model), seed=4)
    samples = np.arange(10, 42)
    real.loss_of(torch.from_numpy(samples)).backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in real.model.parameters()]).numpy()
    start = network.start(4)
    assert np.array_equal(start, torch.cat([p.detach().flatten() for p in real.model.parameters()]).numpy())
    assert network.sizes == [parameter.numel() for parameter in real.model.parameters()]
    _, gradient = network.gradient(start, samples)
    assert np.allclose(gradient, expected, rtol=1e-4, atol=1e-7)
    assert gradient is not network.gradient(start, samples)[1]


def test_a_network_leaves_torch_s_threads_as_they_are() -> None:
    network, before = TorchModel.of("mlp"), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        network.gradient(network.start(0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_quadratic_s_optimum_and_noise_are_known() -> None:
    quadratic = Quadratic()
    optimum = np.zeros(20)
    loss, gradient = quadratic.gradient(optimum)
    assert (loss, np.abs(gradient).max()) == (0.0, 0.0)
    assert quadratic.loss(optimum + 1e-3) > 0.0
    noises = np.array([quadratic.gradient(optimum, np.array([sample]))[1] for sample in range(quadratic.samples)])
    assert np.abs(noises.mean(axis=0)).max() < 1e-12
    deviation = np.sqrt(2 / quadratic.samples)  # of a variance, relative
    assert np.abs(noises.var(axis=0) / quadratic.curvature - 1).max() < 4 * deviation
    assert (quadratic.curvature[0], quadratic.curvature[-1]) == pytest.approx((0.1, 1.0))
    assert np.isnan(quadratic.accuracy(optimum))


@pytest.mark.parametrize(("objective", "rate", "reached"), [(Logistic(), 1.0, 0.9), (SparseLogistic(), 100.0, 0.6)])
def test_descent_classifies(objective: Objective, rate: float, reached: float) -> None:
    parameters = objective.start(0)
    for _ in range(100):
        parameters = parameters - rate * objective.gradient(parameters)[1]
    assert objective.accuracy(parameters) > reached
    assert objective.accuracy(parameters) > objective.accuracy(objective.start(0))


def test_frequencies_follow_zipf() -> None:
    active = [np.count_nonzero(SparseLogistic(zipf=zipf)._data[0], axis=0) for zipf in (0.0, 1.0)]
    assert all(found.sum() == 6000 * 10 for found in active)
    assert active[0].min() > 30
    assert active[1][0] > 4000
    assert active[1][500:].max() < 100


def test_the_numpy_problems_need_no_torch() -> None:
    program = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from distsim import example, simulate\n"
        "from distsim.learning import optimizers, quadratic, replay, sparse\n"
        "trace = simulate(example('backup_server'))\n"
        "for problem in (quadratic.Quadratic(), sparse.SparseLogistic()):\n"
        "    print(len(replay.replay(trace, problem, optimizers.Sgd(0.1), batch=4).loss))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["51", "51"]
