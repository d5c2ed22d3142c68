"""Models learn in real runs with servers: what the run logged is what plain SGD gives, told again from its trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from distsim.learning.batches import Batches
from distsim.learning.optimizers import Sgd
from distsim.learning.problems import problem
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.ranks.task import LEARNING_RATE
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace

STEPS, WORKERS, BATCH = 12, 3, 16
TOLERANCE = 1e-5  # sums of float32 in another order


def scenario_of(policy: dict[str, Any], communication: dict[str, Any]) -> Scenario:
    return Scenario.of(
        {
            "name": "a model",
            "steps": STEPS,
            "seed": 5,
            "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "50 us"},
            "compute": {"distribution": "exponential", "mean": "8 ms"},
            "workload": {"model": "mlp", "batch": BATCH},
            "policy": policy,
            "communication": communication,
        }
    )


def told_again(trace: Trace) -> list[float]:
    """The loss of each update: SGD in one process, each gradient at the parameters that its worker had read."""
    scenario = trace.scenario
    found = problem(scenario.workload, scenario.seed)
    batches = Batches(len(found.training), WORKERS, BATCH, scenario.seed)
    parameters = list(found.model.parameters())
    versions = [torch.nn.utils.parameters_to_vector(parameters).detach().clone()]
    losses = []
    rows = trace.contributions.where(trace.contributions.applied & (trace.contributions.server == WORKERS))
    for version in trace.updates.version[trace.updates.server == WORKERS].tolist():
        total, loss_of = torch.zeros_like(versions[0]), []
        for worker, step, read in zip(*(column[rows.version == version].tolist() for column in (
            rows.worker, rows.step, rows.read_version
        )), strict=True):  # fmt: skip
            torch.nn.utils.vector_to_parameters(versions[read], parameters)
            found.model.zero_grad()
            loss = found.loss_of(torch.from_numpy(batches.of(worker, step)))
            loss.backward()  # type: ignore[no-untyped-call] # torch
            total += torch.cat([one.grad.flatten() for one in parameters])
            loss_of.append(loss.item())
        versions.append(versions[-1] - LEARNING_RATE * total / len(loss_of))
        losses.append(sum(loss_of) / len(loss_of))
    return losses


POLICIES: list[dict[str, Any]] = [
    {"kind": "synchronous"},
    {"kind": "asynchronous"},
    {"kind": "stale_synchronous", "staleness": 1},
    {"kind": "backup", "backups": 1},
    {"kind": "backup", "backups": 1, "cancel": True},
]


def check(trace: Trace) -> None:
    losses = trace.metadata["losses"]
    assert len(losses) == len(np.unique(trace.updates.version))
    assert losses == pytest.approx(told_again(trace), rel=TOLERANCE)
    assert losses == pytest.approx(replay(trace, TorchModel.of("mlp"), Sgd(LEARNING_RATE)).batch_loss, rel=TOLERANCE)
    assert losses[-1] < losses[0]
    for kind in (SpanKind.FORWARD, SpanKind.BACKWARD):
        assert len(trace.spans.of_kind(kind)) == len(trace.spans.of_kind(SpanKind.COMPUTE))


@pytest.mark.real
@pytest.mark.more
def test_the_losses_of_a_run_are_those_of_its_trace_and_a_ring_learns_the_same() -> None:
    traces = measure_all([scenario_of(policy, {"kind": "parameter_server"}) for policy in POLICIES])
    for trace in traces:
        check(trace)
    around_ring = measure(scenario_of({"kind": "synchronous"}, {"kind": "ring"}))
    assert traces[0].metadata["losses"] == pytest.approx(around_ring.metadata["losses"], rel=TOLERANCE)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.thorough
def test_servers_share_the_parameters_also_where_the_last_has_fewer() -> None:
    # 4810 parameters in three shares, each beside a worker
    check(measure(scenario_of({"kind": "synchronous"}, {"kind": "parameter_server", "servers": 3, "colocated": True})))


@pytest.mark.real
@pytest.mark.more
def test_an_update_of_several_steps_has_the_mean_of_their_losses() -> None:
    policies = [{"kind": "local_sgd", "period": 5}, {"kind": "ddp", "accumulate": 5}]
    for trace in measure_all([scenario_of(policy, {"kind": "ring"}) for policy in policies]):
        losses = trace.metadata["losses"]
        assert len(losses) == len(trace.updates) < STEPS / 3
        told = replay(trace, TorchModel.of("mlp"), Sgd(LEARNING_RATE))
        assert losses == pytest.approx(told.batch_loss, rel=TOLERANCE)
