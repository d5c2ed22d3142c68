"""A replay of a real run is that run again, to the bit: the order of each sum and every rounding are the server's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from distsim import Scenario, Trace, simulate
from distsim.learning.batches import Batches
from distsim.learning.objective import Numbers
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.runtime.measure import measure_all
from distsim.runtime.ranks.server_parameters import FirstParameters, Parameters
from distsim.runtime.ranks.task import LEARNING_RATE

WORKERS, BATCH, SEED = 4, 16, 5
MODELS = ("mlp", "cnn")
POLICIES: dict[str, dict[str, Any]] = {
    "backup": {"kind": "backup", "backups": 1},
    "backup, cancel": {"kind": "backup", "backups": 1, "cancel": True},
    "asynchronous": {"kind": "asynchronous"},
    "stale synchronous": {"kind": "stale_synchronous", "staleness": 1},
}


def scenario(policy: str, model: str, steps: int = 12) -> Scenario:
    """Four workers of random speed and a server."""
    return Scenario.of(
        {
            "steps": steps,
            "seed": SEED,
            "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
            "compute": {"distribution": "exponential", "mean": "8 ms"},
            "workload": {"model": model, "batch": BATCH},
            "policy": POLICIES[policy],
            "communication": {"kind": "parameter_server"},
        }
    )


def shuffled(trace: Trace) -> Trace:
    """The same gradients, told in the opposite order."""
    return replace(trace, contributions=trace.contributions.where(np.arange(len(trace.contributions))[::-1]))


def served(trace: Trace, objective: TorchModel) -> Numbers:
    """The parameters that a real server has when it has been given the trace's gradients in the trace's order."""
    floats = len(objective.start(SEED))
    batches = Batches(objective.samples, WORKERS, BATCH, SEED)
    first = FirstParameters(torch.from_numpy(objective.start(SEED)), LEARNING_RATE)
    parameters = Parameters(floats, WORKERS, len(trace.updates), first=first)
    versions = [parameters.newest.payload.clone()]
    rows = trace.contributions.where(trace.contributions.applied)
    for version in trace.updates.version.tolist():
        own = rows.where(rows.version == version)
        for worker, step, read in zip(own.worker.tolist(), own.step.tolist(), own.read_version.tolist(), strict=True):
            _, gradient = objective.gradient(versions[read].numpy(), batches.of(worker, step))
            parameters.add(worker, torch.from_numpy(gradient))
        parameters.update()
        versions.append(parameters.newest.payload.clone())
    return np.asarray(versions[-1].numpy())


def assert_alike(found: Any, expected: Any, **tolerance: float) -> None:
    """To the bit, where the processor multiplies and adds in one instruction; elsewhere a product is rounded, too."""
    if torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        assert np.array_equal(found, expected)
    else:
        assert np.allclose(found, expected, **({"rtol": 0.0} | tolerance))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
def test_parameters_are_those_of_the_server(policy: str, model: str) -> None:
    trace, objective = simulate(scenario(policy, model)), TorchModel.of(model)
    found = replay(trace, objective, Sgd(LEARNING_RATE), points=1).parameters
    assert found.dtype == np.float32
    assert_alike(found, served(trace, objective), atol=2.0**-24 * len(trace.updates))


def test_another_order_of_the_sum_is_another_rounding() -> None:
    trace, objective = simulate(scenario("backup", "cnn")), TorchModel.of("cnn")
    found, other = (
        replay(told, objective, Sgd(LEARNING_RATE), points=1).parameters for told in (trace, shuffled(trace))
    )
    assert not np.array_equal(found, other)
    assert np.allclose(found, other, rtol=0.0, atol=1e-6)


@pytest.mark.real
@pytest.mark.thorough
def test_losses_are_those_that_the_run_logged() -> None:
    """Losses of one update after the other to 1e-5 at least: each depends on all before."""
    for trace in measure_all([scenario(policy, model, steps=25) for policy in POLICIES for model in MODELS]):
        assert (np.diff(trace.contributions.worker) < 0).any(), "the order of arrival is not that of the workers"
        objective = TorchModel.of(trace.scenario.workload.model)
        logged, found = trace.metadata["losses"], replay(trace, objective, Sgd(LEARNING_RATE)).batch_loss
        assert logged == pytest.approx(found, rel=1e-5)
        assert_alike(found, logged, rtol=1e-5)
