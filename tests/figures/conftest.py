"""Runs made by hand, small enough to count what a figure must draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from distsim.examples import example
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, TraceBuilder
from tests.explorers.conftest import browser, lab, page, problems

__all__ = ["browser", "lab", "page", "problems"]  # the browser and JupyterLab of the explorers' tests

SEND_SECONDS, PULL_SECONDS, NUM_BYTES = 0.004, 0.003, 4 * 2.0**20

MakeTrace = Callable[..., Trace]


def server_run(
    workers: int = 4, steps: int = 12, backups: int = 0, slower: float = 1.0, producer: str = "simulated"
) -> Trace:
    """Training with one parameter server; a late gradient of step s is dropped when it arrives after its update."""
    times = np.random.default_rng(7).lognormal(np.log(0.05), 0.3, size=(steps, workers)) * slower
    builder, free, server, versions = TraceBuilder(), np.zeros(workers), workers, np.zeros(workers, dtype=int)
    for update in range(1, steps + 1):
        here = versions == update - 1
        start = free.copy()
        compute = start + times[update - 1]
        arrival = np.where(here, compute + SEND_SECONDS, np.inf)
        made = float(np.sort(arrival)[workers - backups - 1])
        for worker in range(workers):
            if not here[worker]:
                continue
            step = update - 1
            builder.span(worker, SpanKind.COMPUTE, step, start[worker], compute[worker])
            builder.push(worker, server, step, NUM_BYTES, compute[worker], arrival[worker])
            asked = max(float(arrival[worker]), made)
            if arrival[worker] <= made:
                builder.applied(update, worker, step, read_version=update - 1, server=server)
                versions[worker] = update
            else:
                builder.not_applied(worker, step, update - 1, cancelled=False, server=server)
                versions[worker] = update  # answered at once with the newest version: here this update
            builder.pull(worker, server, step, NUM_BYTES, float(arrival[worker]), asked, asked + PULL_SECONDS)
            free[worker] = asked + PULL_SECONDS
        builder.span(server, SpanKind.APPLY, update - 1, made, made + 0.0005)
        builder.update(update, made, server)
    name = "backup_server"
    table = example(name).replacing({"cluster.workers": workers, "policy.backups": backups, "steps": steps}).table()
    return builder.build(workers=workers, servers=1, producer=producer, scenario=table)


@pytest.fixture(scope="session")
def make_trace() -> MakeTrace:
    """`server_run`, for tests that choose their own sizes."""
    return server_run


def run_with_failures(kind: str = "ring", producer: str = "simulated") -> Trace:
    """40 steps with 4 workers, a checkpoint every 300 ms, and five failures."""
    failures = {
        "mean_time_between": "4 s", "checkpoint_every": "300 ms", "checkpoint_cost": "40 ms", "restart_cost": "150 ms",
    }  # fmt: skip
    compute = {"distribution": "lognormal", "mean": "50 ms", "cv": 0.2}
    changes = {"communication": {"kind": kind}, "compute": compute, "failures": failures, "steps": 40, "seed": 3}
    trace = simulate(example("synchronous_ring").replacing(changes))
    assert trace.spans.of_kind(SpanKind.LOST)
    return replace(trace, metadata=trace.metadata | {"producer": producer})


@pytest.fixture(scope="session")
def fallen() -> MakeTrace:
    """`run_with_failures`."""
    return run_with_failures
