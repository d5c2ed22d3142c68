"""N workers with batches of b do what one process does with batches of N b: in replays, and in real runs of DDP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distsim import Scenario, Trace, simulate
from distsim.learning.batches import Batches
from distsim.learning.delays import plain
from distsim.learning.objective import Numbers
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import Replay, replay
from distsim.learning.torch_model import TorchModel
from distsim.learning.updates import recorded_updates
from distsim.runtime.measure import measure_all
from distsim.runtime.ranks.task import LEARNING_RATE

WATCHED = str(Path(__file__).parent / "ranks" / "watched.py")
TOGETHER, STEPS, SEED = 32, 50, 5
SAMPLES = 1408  # 44 whole steps, so that 50 of them reach into the next epoch
IN_ONE_EPOCH = 20  # of all 1437 samples, whose last step of an epoch has some of them twice, for workers to be equal
MODELS = ("mlp", "cnn")
CASES = [(model, workers) for model in MODELS for workers in (2, 4, 8)]
SEVERAL_BUCKETS = {"kind": "ddp", "bucket": "4 KiB", "first_bucket": "4 KiB"}


def scenario(workers: int, **tables: Any) -> Scenario:
    """Synchronous training of the MLP on a ring."""
    table = {
        "steps": STEPS,
        "seed": SEED,
        "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "100 us"},
        "compute": {"distribution": "exponential", "mean": "1 ms"},
        "workload": {"model": "mlp", "batch": TOGETHER // workers},
        "policy": {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


def errors(objective: TorchModel, found: Numbers, expected: Numbers) -> list[float]:
    """The relative norm of the difference, of each of the model's tensors."""
    cuts = np.cumsum(objective.sizes)[:-1]
    pairs = zip(np.split(found, cuts), np.split(expected, cuts), strict=True)
    return [float(np.linalg.norm(one - other) / np.linalg.norm(other)) for one, other in pairs]


def step_by_step(model: str, workers: int) -> Iterator[tuple[list[float], list[float]]]:
    """Errors of gradients and of new parameters where each of the replay's updates begins at the same state."""
    objective = TorchModel.of(model, samples=SAMPLES)

    def begun(trace: Trace) -> Replay:
        recorded = recorded_updates(trace)
        batches = Batches(objective.samples, recorded.workers, recorded.batch, recorded.seed)
        return Replay(recorded, objective, Sgd(0.1), batches, touched=1.0)

    one, several = begun(plain(STEPS, TOGETHER, SEED)), begun(simulate(scenario(workers)))
    for update, alone in zip(several.recorded.updates(), one.recorded.updates(), strict=True):
        (_, count, total, weight), (_, same_count, expected, same) = several.summed(update), one.summed(alone)
        assert (count, same_count, weight, same) == (TOGETHER, TOGETHER, len(update.gradients), 1.0)
        several.apply(update)
        one.apply(alone)
        yield errors(objective, total / weight, expected), errors(objective, several.parameters, one.parameters)
        one.parameters = several.parameters
        one.versions[update.version] = several.versions[update.version] = several.parameters


@pytest.mark.parametrize(("model", "workers"), CASES)
def test_a_step_from_the_same_state(model: str, workers: int) -> None:
    for of_gradient, of_parameters in step_by_step(model, workers):
        assert max(of_gradient) <= 1e-6
        assert max(of_parameters) <= 1e-6


@pytest.mark.parametrize(("model", "workers"), CASES)
def test_fifty_steps_in_double_precision(model: str, workers: int) -> None:
    objective = TorchModel.of(model, torch.float64, SAMPLES)
    one = replay(plain(STEPS, TOGETHER, SEED), objective, Sgd(0.1), points=5)
    several = replay(simulate(scenario(workers)), objective, Sgd(0.1), points=5)
    assert np.allclose(several.loss, one.loss, rtol=1e-12, atol=0.0)
    assert np.allclose(several.batch_loss, one.batch_loss, rtol=1e-12, atol=0.0)
    assert max(errors(objective, several.parameters, one.parameters)) <= 1e-12
    assert several.samples.tolist() == one.samples.tolist()
    assert one.loss[-1] < 0.9 * one.loss[0]


def test_accumulated_steps_are_one_larger_batch() -> None:
    """4 workers x 4 samples x 2 steps: a worker's two batches of 4 are the batch of 8 it would have had."""
    objective = TorchModel.of("mlp", torch.float64, SAMPLES)
    accumulated = scenario(4, steps=20, policy={"kind": "ddp", "accumulate": 2}, workload={"model": "mlp", "batch": 4})
    whole = scenario(4, steps=10)
    one, other = (replay(simulate(each), objective, Sgd(0.1)) for each in (accumulated, whole))
    assert max(errors(objective, one.parameters, other.parameters)) <= 1e-12
    assert one.effective_batch == other.effective_batch == TOGETHER


def watched(
    monkeypatch: pytest.MonkeyPatch, folder: Path, workers: int
) -> dict[tuple[str, torch.dtype], tuple[Numbers, Numbers]]:
    """Of real runs the parameters before each update, and the gradient that it applied; the same on all ranks."""
    monkeypatch.setenv("DISTSIM_TEST_WATCHED", json.dumps({"folder": str(folder), "samples": SAMPLES}))
    names = {(model, dtype): f"{model}-{dtype}" for model in MODELS for dtype in (torch.float32, torch.float64)}
    asked = [
        scenario(workers, name=name, policy=SEVERAL_BUCKETS, workload={"model": model, "batch": TOGETHER // workers})
        for (model, _), name in names.items()
    ]
    measure_all(asked, entry=(WATCHED,))
    found = {}
    for key, name in names.items():
        ranks = [np.load(folder / f"{name}-{rank}.npz") for rank in range(workers)]
        columns = [(rank["parameters"], rank["gradients"]) for rank in ranks]
        assert all(np.array_equal(own, first) for rank in columns for own, first in zip(rank, columns[0], strict=True))
        found[key] = columns[0]
    return found


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize("workers", [2, 4])
def test_ranks_of_ddp_are_one_process(workers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    batches = Batches(SAMPLES, 1, TOGETHER, SEED)
    for (model, dtype), (parameters, gradients) in watched(monkeypatch, tmp_path, workers).items():
        objective = TorchModel.of(model, dtype, SAMPLES)
        tolerance = 1e-6 if dtype == torch.float32 else 1e-12
        alone = objective.start(SEED)
        assert parameters.dtype == gradients.dtype == alone.dtype
        assert len(parameters) == len(gradients) == STEPS
        for step, (before, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            if step == 0 or dtype == torch.float64:
                assert max(errors(objective, before, alone)) <= tolerance
                alone = alone - LEARNING_RATE * objective.gradient(alone, batches.of(0, step))[1]
            _, expected = objective.gradient(before, batches.of(0, step))
            assert max(errors(objective, gradient, expected)) <= tolerance


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize("workers", [pytest.param(2, marks=pytest.mark.thorough), 4])
def test_real_runs_log_the_losses_of_one_process(workers: int) -> None:
    asked = [
        scenario(workers, steps=IN_ONE_EPOCH, policy=policy, workload={"model": model, "batch": TOGETHER // workers})
        for model in MODELS
        for policy in (SEVERAL_BUCKETS, {"kind": "synchronous"})
    ]
    for trace in measure_all(asked):
        objective = TorchModel.of(trace.scenario.workload.model)
        for told_again in (trace, plain(IN_ONE_EPOCH, TOGETHER, SEED)):
            losses = replay(told_again, objective, Sgd(LEARNING_RATE)).batch_loss
            assert trace.metadata["losses"] == pytest.approx(losses, rel=1e-5)
        assert losses[-1] < losses[0]
