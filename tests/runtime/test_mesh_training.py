"""Groups of workers that share blocks, with a batch each, learn what one process learns on all batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.learning.batches import Batches
from distsim.learning.kernels import one_thread
from distsim.learning.problems import problem
from distsim.memory import held
from distsim.memory_over_time import held_over_time
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.ranks.task import LEARNING_RATE
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace
from tests.runtime.test_program_runs import carried, exchanges

STAGES = range(4)


def scenario(data: int, tensor: int, stage: int, steps: int = 4, **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": steps,
        "seed": 5,
        "cluster": {"workers": data * tensor, "bandwidth": "1 Gbit/s", "latency": "50 us"},
        "workload": {"model": "transformer", "layers": 3, "width": 20, "batch": 6},
        "policy": {"kind": "mesh", "data": data, "tensor": tensor, "stage": stage},
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


def alone(scenario: Scenario, groups: int) -> Floats:
    """The losses of torch's own blocks in one process, whose batch is those of all groups together."""
    found = problem(scenario.workload, scenario.seed)
    batches = Batches(len(found.training), groups, scenario.workload.batch, scenario.seed)
    optimizer = torch.optim.SGD(found.model.parameters(), lr=LEARNING_RATE)
    losses = []
    with one_thread():
        for step in range(scenario.steps):
            optimizer.zero_grad()
            samples = np.concatenate([batches.of(group, step) for group in range(groups)])
            loss = found.loss_of(torch.from_numpy(samples))
            loss.backward()  # type: ignore[no-untyped-call] # torch
            optimizer.step()
            losses.append(loss.item())
    return np.array(losses)


@pytest.fixture(scope="module")
def runs(whole: Any) -> dict[int, list[Trace]]:
    """By the number of groups, a run of each stage; and one whose workers also wait for a drawn time."""
    found = {}
    for data, tensor in whole([(2, 2)], [(2, 2), (1, 2), (1, 4)]):
        asked = [scenario(data, tensor, stage, whole(10, 50)) for stage in STAGES]
        asked.append(scenario(data, tensor, 0, compute={"mean": "24 ms"}))
        found.setdefault(data, []).extend(measure_all(asked))
    return found


pytestmark = [pytest.mark.real, pytest.mark.more]


def test_workers_learn_what_one_process_learns(runs: dict[int, list[Trace]]) -> None:
    for groups, traces in runs.items():
        for trace in traces:
            expected = alone(trace.scenario, groups)
            assert expected[-1] < expected[0]
            assert np.array(trace.metadata["losses"]) == pytest.approx(expected, rel=1e-6)


def test_they_send_what_the_simulation_sends(runs: dict[int, list[Trace]]) -> None:
    for groups, trace in ((groups, one) for groups, traces in runs.items() for one in traces):
        predicted = simulate(trace.scenario)
        ours, theirs = ({row[:4] for row in carried(one)} for one in (trace, predicted))
        assert ours == theirs
        assert trace.transfers.bytes.sum() == pytest.approx(predicted.transfers.bytes.sum(), rel=1e-12)
        for kind in (SpanKind.FORWARD, SpanKind.BACKWARD):
            assert len(trace.spans.of_kind(kind)) == len(predicted.spans.of_kind(kind))
        for worker in range(trace.workers if groups > 1 else 0):  # one alone exchanges in no time
            assert exchanges(trace, worker) == exchanges(predicted, worker)


def test_they_hold_the_bytes_that_are_predicted(runs: dict[int, list[Trace]]) -> None:
    """Of one group alone, whose sums take no time, two whole units may or may not be there at once."""
    for groups, trace in ((groups, one) for groups, traces in runs.items() for one in traces):
        predicted = held(trace.scenario)
        for kind, of_workers in trace.metadata["held_bytes"].items():
            assert max(of_workers) <= getattr(predicted, kind) < trace.scenario.gradient_bytes
            if groups == 1 and trace.scenario.policy.stage >= 2:
                continue
            assert max(of_workers) == getattr(predicted, kind)
            over_time = [held_over_time(trace, worker).held[kind].max() for worker in range(trace.workers)]
            assert max(over_time) == pytest.approx(max(of_workers), rel=1e-12)


def test_drawn_time_comes_on_top(runs: dict[int, list[Trace]]) -> None:
    for drawn in (one for traces in runs.values() for one in traces if one.scenario.compute.mean_seconds):
        assert drawn.total_seconds > drawn.scenario.steps * 24e-3


def test_what_no_real_run_can_do_is_refused() -> None:
    with pytest.raises(InputError, match=r'policy.tensor = 1: shares no block.*write kind = "sharded", stage = 2'):
        measure(scenario(2, 1, stage=2))
    with pytest.raises(InputError, match=r'policy.tensor = 1: .*write kind = "ddp"'):
        measure(scenario(2, 1, stage=0))
    with pytest.raises(InputError, match=r"policy.tensor = 3: does not divide the 4 heads.*write 2 or 4"):
        measure(scenario(1, 3, stage=0))
    workload = {"model": "transformer", "layers": 3, "width": 20, "batch": 6, "activation": "1 MB"}
    with pytest.raises(InputError, match=r"workload.activation = .*hands on: 3840 bytes"):
        measure(scenario(2, 2, stage=0, workload=workload))
    assert simulate(scenario(1, 3, stage=0)).scenario.workload.handed_on_bytes == 3840
