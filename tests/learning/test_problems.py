"""Models and data: the sizes that the simulator counts with, the split, the batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from distsim import InputError, Scenario
from distsim.learning.problems import digits, problem
from distsim.workload import TRAINING_SAMPLES, Workload

WORKLOADS = [
    Workload(model="mlp"),
    Workload(model="cnn"),
    Workload(model="transformer"),
    Workload(model="transformer", layers=3, width=20),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_the_simulator_counts_the_parameters_that_torch_has(workload: Workload) -> None:
    layers = problem(workload).layers
    found = [sum(4.0 * parameter.numel() for parameter in layer.parameters()) for layer in layers]
    assert workload.layer_bytes == found
    assert len(layers) == workload.layers
    assert workload.num_bytes == sum(4.0 * parameter.numel() for parameter in problem(workload).model.parameters())
    assert {parameter.dtype for parameter in problem(workload).model.parameters()} == {torch.float32}


@pytest.mark.parametrize("workload", [WORKLOADS[0], WORKLOADS[1], WORKLOADS[3]], ids=str)
def test_every_model_learns(workload: Workload) -> None:
    found = problem(workload, seed=3)
    samples = torch.arange(32)
    optimizer = torch.optim.SGD(found.model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = found.loss_of(samples)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert len(found.training) == TRAINING_SAMPLES[str(workload.model)]


def test_the_seed_alone_decides_the_parameters() -> None:
    torch.manual_seed(1)
    one = problem(WORKLOADS[0], seed=5).model
    before = torch.get_rng_state()
    other = problem(WORKLOADS[0], seed=5).model
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    another = problem(WORKLOADS[0], seed=6).model
    assert not torch.equal(next(one.parameters()), next(another.parameters()))


def test_the_digits_are_split_by_class() -> None:
    training, test = digits()
    assert (training.inputs.shape, test.inputs.shape) == ((1437, 64), (360, 64))
    assert (float(training.inputs.min()), float(training.inputs.max())) == (0.0, 1.0)
    shares = [np.bincount(part.targets.numpy(), minlength=10) / len(part) for part in (training, test)]
    assert np.abs(shares[0] - shares[1]).max() < 0.003
    everything = torch.cat([training.inputs, test.inputs])
    assert len(torch.unique(everything, dim=0)) == 1797


def test_a_workload_without_a_model_is_no_problem() -> None:
    with pytest.raises(InputError, match=r'workload\.model = None.*model = "mlp"'):
        problem(Workload(gradient="1 MiB"))


def test_a_scenario_with_a_model_knows_its_gradient_and_survives_a_file() -> None:
    table = {
        "steps": 2,
        "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "0 s"},
        "compute": {"mean": "10 ms"},
        "workload": {"model": "cnn", "batch": 8},
        "policy": {"kind": "ddp"},
        "communication": {"kind": "ring"},
    }
    scenario = Scenario.of(table)
    assert scenario.gradient_bytes == 4 * (80 + 1168 + 2570)
    assert scenario.workload.layers == 3
    assert Scenario.loads(scenario.dumps()) == scenario
