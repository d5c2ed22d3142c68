"""Workers that share every block of a transformer learn what one process learns, and send and hold as predicted."""

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
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.ranks.task import LEARNING_RATE
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace

WIDTHS, SEED = (20, 64), 5


def scenario(workers: int, width: int = 20, steps: int = 4, **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": steps,
        "seed": SEED,
        "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "50 us"},
        "workload": {"model": "transformer", "layers": 3, "width": width, "batch": 6},
        "policy": {"kind": "tensor"},
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


def alone(scenario: Scenario) -> Floats:
    """The losses of torch's own blocks in one process, on the one batch of all workers."""
    found = problem(scenario.workload, scenario.seed)
    batches = Batches(len(found.training), 1, scenario.workload.batch, scenario.seed)
    optimizer = torch.optim.SGD(found.model.parameters(), lr=LEARNING_RATE)
    losses = []
    with one_thread():
        for step in range(scenario.steps):
            optimizer.zero_grad()
            loss = found.loss_of(torch.from_numpy(batches.of(0, step)))
            loss.backward()  # type: ignore[no-untyped-call] # torch
            optimizer.step()
            losses.append(loss.item())
    return np.array(losses)


@pytest.fixture(scope="module")
def runs(whole: Any) -> list[Trace]:
    """Three workers do not divide the heads, nor the hidden units of one of both widths."""
    found = []
    for workers in whole(0, 1) * [2, 3, 4] or [3]:
        asked = [scenario(workers, width, whole(10, 50)) for width in WIDTHS]
        asked.append(scenario(workers, compute={"mean": "24 ms"}))
        found += measure_all(asked)
    return found


pytestmark = [pytest.mark.real, pytest.mark.more]


def test_workers_learn_what_one_process_learns(runs: list[Trace]) -> None:
    for trace in runs:
        expected = alone(trace.scenario)
        assert expected[-1] < expected[0]
        assert np.array(trace.metadata["losses"]) == pytest.approx(expected, rel=1e-6)


def test_they_send_what_the_simulation_sends(runs: list[Trace]) -> None:
    for trace in runs:
        ours, predicted = trace.transfers, simulate(trace.scenario).transfers
        assert len(ours) == len(predicted)
        assert ours.bytes.sum() == pytest.approx(predicted.bytes.sum(), rel=1e-12)
        for kind in (SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.ALL_REDUCE):
            assert len(trace.spans.of_kind(kind)) == len(simulate(trace.scenario).spans.of_kind(kind))


def test_they_hold_the_bytes_that_are_predicted(runs: list[Trace]) -> None:
    for trace in runs:
        predicted = held(trace.scenario)
        for kind, of_workers in trace.metadata["held_bytes"].items():
            assert max(of_workers) == getattr(predicted, kind) < trace.scenario.gradient_bytes


def test_drawn_time_comes_on_top(runs: list[Trace]) -> None:
    (drawn, *_) = (trace for trace in runs if trace.scenario.compute.mean_seconds)
    assert drawn.total_seconds > drawn.scenario.steps * 24e-3


def test_what_no_real_run_can_do_is_refused() -> None:
    with pytest.raises(InputError, match=r"cluster.workers = 5: are more than the 4 heads of a block"):
        measure(scenario(5))
    workload = {"model": "transformer", "layers": 3, "width": 20, "batch": 6, "activation": "1 MB"}
    with pytest.raises(InputError, match=r"workload.activation = .*hands on: 3840 bytes. Cure: remove activation"):
        measure(scenario(2, workload=workload))
    assert simulate(scenario(5)).scenario.workload.handed_on_bytes == 3840
