"""N workers with batches of b do what one process does with batches of N b."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from distsim import Scenario, Trace, simulate
from distsim.learning.batches import Batches
from distsim.learning.delays import plain
from distsim.learning.objective import Floats
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import Replay, replay
from distsim.learning.torch_model import TorchModel
from distsim.learning.updates import told

TOGETHER, STEPS = 32, 50
SAMPLES = 1408  # 44 whole steps, so that 50 of them reach into the next epoch
CASES = [(model, workers) for model in ("mlp", "cnn") for workers in (2, 4, 8)]


def many(workers: int, **tables: Any) -> Trace:
    """Synchronous training on a ring."""
    table = {
        "steps": STEPS,
        "seed": 5,
        "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "100 us"},
        "compute": {"distribution": "exponential", "mean": "50 ms"},
        "workload": {"model": "mlp", "batch": TOGETHER // workers},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    }
    return simulate(Scenario.of(table | tables))


def errors(objective: TorchModel, found: Floats, expected: Floats) -> list[float]:
    """The relative norm of the difference, of each of the model's tensors."""
    cuts = np.cumsum(objective.sizes)[:-1]
    pairs = zip(np.split(found, cuts), np.split(expected, cuts), strict=True)
    return [float(np.linalg.norm(one - other) / np.linalg.norm(other)) for one, other in pairs]


@pytest.mark.parametrize(("model", "workers"), CASES)
def test_a_step_from_the_same_state(model: str, workers: int) -> None:
    objective = TorchModel.of(model, samples=SAMPLES)

    def begun(trace: Trace) -> Replay:
        tells = told(trace)
        batches = Batches(objective.samples, tells.workers, tells.batch, tells.seed)
        return Replay(tells, objective, Sgd(0.1), batches, touched=1.0, staleness_aware=False)

    one, several = begun(plain(STEPS, TOGETHER, seed=5)), begun(many(workers))
    for update, alone in zip(several.tells.updates(), one.tells.updates(), strict=True):
        _, count, gradient = several.apply(update)
        _, same_count, expected = one.apply(alone)
        assert count == same_count == TOGETHER
        # Later the gradients of the CNN's biases are small sums of large terms, and rounding reaches 1.3e-6 of them.
        if model == "mlp" or update.version == 1:
            assert max(errors(objective, gradient, expected)) <= 1e-6
        assert max(errors(objective, several.parameters, one.parameters)) <= 1e-6
        one.parameters = several.parameters
        one.versions[update.version] = several.versions[update.version] = several.parameters


@pytest.mark.parametrize(("model", "workers"), CASES)
def test_fifty_steps_in_double_precision(model: str, workers: int) -> None:
    objective = TorchModel.of(model, torch.float64, SAMPLES)
    one = replay(plain(STEPS, TOGETHER, seed=5), objective, Sgd(0.1), points=STEPS)
    several = replay(many(workers), objective, Sgd(0.1), points=STEPS)
    assert np.allclose(several.loss, one.loss, rtol=1e-12, atol=0.0)
    assert np.allclose(several.batch_loss, one.batch_loss, rtol=1e-12, atol=0.0)
    assert max(errors(objective, several.parameters, one.parameters)) <= 1e-12
    assert several.samples.tolist() == one.samples.tolist()
    assert one.loss[-1] < 0.9 * one.loss[0]


def test_accumulated_steps_are_one_larger_batch() -> None:
    """4 workers x 4 samples x 2 steps: a worker's two batches of 4 are the batch of 8 it would have had."""
    objective = TorchModel.of("mlp", torch.float64, SAMPLES)
    accumulated = many(4, steps=20, policy={"kind": "ddp", "accumulate": 2}, workload={"model": "mlp", "batch": 4})
    whole = many(4, steps=10)
    one, other = (replay(trace, objective, Sgd(0.1)) for trace in (accumulated, whole))
    assert max(errors(objective, one.parameters, other.parameters)) <= 1e-12
    assert one.effective_batch == other.effective_batch == TOGETHER
