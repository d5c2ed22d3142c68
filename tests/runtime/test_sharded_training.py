"""Workers that train a model sharded learn what one process learns, send what is predicted, and hold what they may."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.learning.kernels import one_thread
from distsim.memory import held
from distsim.memory_over_time import held_over_time
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.profiling.own_model import load
from distsim.runtime.ranks.task import OWN_LEARNING_RATE
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.sharding import sharded_link_bytes
from distsim.trace import SpanKind, Trace
from distsim.workload import FLOAT_BYTES
from tests.runtime import sharded_models

MODELS = Path(sharded_models.__file__)
OWN = ("tied", "branches", "sequence", "recomputed", "sparse")
KNOWN: dict[str, dict[str, Any]] = {
    "transformer": {"model": "transformer", "layers": 3, "width": 20, "batch": 4},
    "cnn": {"model": "cnn", "batch": 8},
}
SEED = 7
POLICIES: list[dict[str, Any]] = [
    {"stage": 1},
    {"stage": 2, "bucket": "5 kB"},
    {"stage": 3},
    {"stage": 3, "bucket": "5 kB", "prefetch": 0},
    {"stage": 3, "bucket": "3 kB", "prefetch": 3},
]

pytestmark = [pytest.mark.real, pytest.mark.more]


def scenario(model: str, policy: dict[str, Any], workers: int, steps: int, **tables: Any) -> Scenario:
    table = {
        "steps": steps,
        "seed": SEED,
        "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "50 us"},
        "workload": KNOWN.get(model, {"model": f"{MODELS}:{model}"}),
        "policy": {"kind": "sharded"} | policy,
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


def alone(model: str, steps: int) -> Floats:
    """The losses of torch's SGD in one process. All workers have one batch, so their mean gradient is this gradient."""
    own = load(f"{MODELS}:{model}", seed=SEED)
    optimizer = torch.optim.SGD(own.layers.values(), lr=OWN_LEARNING_RATE)
    losses = []
    with one_thread():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = own.module(*own.batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return np.array(losses)


@pytest.fixture(scope="module")
def all_runs(whole: Any) -> dict[str, list[Trace]]:
    """The real runs of each model, and those with a drawn time. The first of a model of distsim's is data parallel."""
    found: dict[str, list[Trace]] = defaultdict(list)
    for workers in whole(0, 1) * [2, 4] or [3]:
        asked = [(model, policy) for model in OWN for policy in POLICIES]
        asked += [(model, policy) for model in KNOWN for policy in ({"kind": "synchronous"}, *POLICIES)]
        scenarios = [scenario(model, policy, workers, whole(10, 50)) for model, policy in asked]
        scenarios.append(scenario("sequence", {"stage": 3}, workers, steps=4, compute={"mean": "24 ms"}))
        for name, trace in zip([*(model for model, _ in asked), "drawn"], measure_all(scenarios), strict=True):
            found[name].append(trace)
    return found


@pytest.fixture(params=[*OWN, *KNOWN])
def runs(request: pytest.FixtureRequest, all_runs: dict[str, list[Trace]]) -> list[Trace]:
    return all_runs[request.param]


def test_workers_learn_what_one_process_learns(runs: list[Trace]) -> None:
    """Shared and frozen parameters too, and sizes that the workers do not divide."""
    for trace in runs:
        # Those of plain data parallel training by as many workers, see `test_data_parallel`.
        expected = next(one.metadata["losses"] for one in runs if one.workers == trace.workers)
        if trace.scenario.workload.own_model:
            expected = alone(trace.scenario.workload.model.rpartition(":")[2], trace.scenario.steps)
        assert expected[-1] < expected[0]
        assert np.array(trace.metadata["losses"]) == pytest.approx(np.array(expected), rel=1e-6)


def test_they_send_what_the_simulation_sends(runs: list[Trace]) -> None:
    for trace in sharded(runs):
        ours, predicted = trace.transfers, simulate(trace.scenario).transfers
        assert route(ours) == route(predicted)
        assert ours.bytes.sum() == pytest.approx(predicted.bytes.sum(), rel=1e-12)
        assert abs(by_route(ours) - by_route(predicted)).max() < FLOAT_BYTES, "no chunk has a part of a number"
        program = trace.scenario.policy.program(trace.scenario.workload, trace.scenario.cluster.workers)
        for kind in (SpanKind.FORWARD, SpanKind.BACKWARD):
            each = sum(one.kind == kind.name.lower() for one in program.computations)
            assert len(trace.spans.of_kind(kind)) == each * trace.scenario.cluster.workers * trace.scenario.steps


def sharded(traces: list[Trace]) -> list[Trace]:
    return [trace for trace in traces if trace.scenario.policy.kind == "sharded"]


def route(transfers: Any) -> list[tuple[int, ...]]:
    columns = (transfers.collective, transfers.source, transfers.target, transfers.chunk)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def by_route(transfers: Any) -> Floats:
    """The bytes of each transfer, in the order of `route`."""
    order = np.lexsort((transfers.chunk, transfers.target, transfers.source, transfers.collective))
    return np.asarray(transfers.bytes[order])


def test_they_hold_the_bytes_that_are_predicted(runs: list[Trace]) -> None:
    """Exactly, also where a module or several layers compute with many units. With more gathered ahead, at most."""
    for trace in sharded(runs):
        policy, predicted = trace.scenario.policy, held(trace.scenario)
        measured = {kind: max(of_workers) for kind, of_workers in trace.metadata["held_bytes"].items()}
        if policy.stage == 1:
            assert measured == {"parameters": predicted.parameters, "gradients": predicted.gradients}
        else:
            assert measured["parameters"] <= predicted.parameters
            assert measured["gradients"] <= predicted.gradients
            if policy.prefetch <= 1:
                assert measured == {"parameters": predicted.parameters, "gradients": predicted.gradients}
                assert most_over_time(trace) == pytest.approx(measured, rel=1e-12)


def most_over_time(trace: Trace) -> dict[str, float]:
    found = [held_over_time(trace, worker) for worker in range(trace.workers)]
    return {kind: max(one.held[kind].max() for one in found) for kind in ("parameters", "gradients")}


def test_a_forward_that_goes_another_way_is_told() -> None:
    """Nobody knows which parameters it would use, and some have no memory."""
    with pytest.raises(InputError, match="needs a forward that calls the same modules in each step, and this one"):
        measure(scenario("fickle", {"stage": 3}, workers=2, steps=30))


def test_drawn_time_comes_on_top(all_runs: dict[str, list[Trace]]) -> None:
    for trace in all_runs["drawn"]:
        assert trace.total_seconds > trace.scenario.steps * 24e-3
        forward = trace.spans.of_kind(SpanKind.FORWARD)
        assert (forward.end_seconds - forward.start_seconds).min() >= 0.99 * 8e-3 / trace.scenario.workload.layers


@pytest.mark.parametrize("stage", [*(pytest.param(stage, marks=pytest.mark.thorough) for stage in (1, 2)), 3])
def test_torch_shards_alike(stage: int, whole: Any, tmp_path: Path) -> None:
    """`ZeroRedundancyOptimizer` and `fully_shard` learn the same. torch fills up parts that do not divide."""
    steps, root = whole(10, 50), MODELS.parents[2]
    found = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--log-dir", tmp_path,
         MODELS.with_name("torch_sharding.py"), str(stage), str(steps)],
        cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    told = json.loads(found.stdout)
    assert told["losses"] == pytest.approx(alone("sequence", steps).tolist(), rel=1e-6)
    whole_bytes = sum(one.nbytes for one in load(f"{MODELS}:sequence").layers.values())
    assert told["held"] == pytest.approx(whole_bytes / (1 if stage == 1 else 2), rel=0.05)
    if stage > 1:
        assert told["link_bytes"] == pytest.approx(sharded_link_bytes(whole_bytes, 2, stage), rel=0.05)
