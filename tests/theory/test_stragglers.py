"""Mean steps of synchronous training against drawn times and against closed forms."""

from __future__ import annotations

import ast
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

import distsim.theory
from distsim.compute import Compute, ComputeTimes
from distsim.distributions import Empirical, Exponential, Lognormal
from distsim.errors import InputError
from distsim.theory.order_statistics import WorkerTime
from distsim.theory.stragglers import (
    cancelled_backup_step_seconds,
    synchronous_step_seconds,
    worker_times,
)

ONE = WorkerTime(Exponential(1.0))


# Communication free


@pytest.mark.parametrize("workers", [4, 8, 16, 32, 100])
def test_exponential_steps_are_harmonic(workers: int) -> None:
    total = sum(1 / i for i in range(1, workers + 1))
    assert synchronous_step_seconds([ONE] * workers) == pytest.approx(total, rel=1e-9)
    for backups in (0, 1, 2, workers // 2, workers - 1):
        step = total - sum(1 / i for i in range(1, backups + 1))
        assert cancelled_backup_step_seconds([ONE] * workers, backups) == pytest.approx(step, rel=1e-9)


def test_a_step_without_backups_is_the_synchronous_one() -> None:
    times = [WorkerTime(Lognormal(1.0, 0.3))] * 7 + [WorkerTime(Lognormal(1.0, 0.3), 2.0)]
    assert cancelled_backup_step_seconds(times, 0) == synchronous_step_seconds(times)


@pytest.mark.parametrize("backups", [-1, 4, 9])
def test_backups_that_leave_nobody(backups: int) -> None:
    with pytest.raises(InputError, match=f"backups = {backups}: must be 0 to 3.*Cure: "):
        cancelled_backup_step_seconds([ONE] * 4, backups)


COMPUTES = {
    "lognormal, slow, pauses": {
        "distribution": "lognormal", "mean": "50 ms", "cv": 0.3,
        "slow": {"1": 2.0, "4": 1.2}, "pauses": {"probability": 0.05, "duration": "200 ms"},
    },
    "constant with pauses": {"mean": "50 ms", "pauses": {"probability": 0.1, "duration": "10 ms"}},
    "pareto": {"distribution": "pareto", "mean": "50 ms", "alpha": 3.0},
    "exponential": {"distribution": "exponential", "fixed": "10 ms", "per_sample": "5 ms", "slow": {"0": 3.0}},
}  # fmt: skip


@pytest.mark.parametrize("table", COMPUTES.values(), ids=COMPUTES)
def test_mean_steps_of_a_scenarios_compute_table(table: dict[str, object]) -> None:
    """The draws that simulation and real run use have the means that the formulas give."""
    compute, workers, batch, steps = Compute(**table), 5, 8, 40_000
    draws = ComputeTimes(compute, seed=3, batch=batch)
    rows = np.stack([draws.first(worker, steps)[:steps] for worker in range(workers)], axis=1)
    times = worker_times(compute, workers, batch)
    for worker, time in enumerate(times):
        assert abs(rows[:, worker].mean() - time.mean_seconds) <= 4 * rows[:, worker].std() / math.sqrt(steps)
    for backups in (0, 1, 3):
        kth = np.sort(rows, axis=1)[:, workers - backups - 1]
        error = kth.std() / math.sqrt(steps)
        assert abs(kth.mean() - cancelled_backup_step_seconds(times, backups)) <= 4 * error


def test_replayed_columns_are_the_workers_own_times(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("0.1 0.5\n0.3 0.7\n", "utf-8")
    times = worker_times(Compute(distribution="replay", file=str(path), slow={1: 2.0}), workers=2)
    assert times == [WorkerTime(Empirical((0.1, 0.3))), WorkerTime(Empirical((0.5, 0.7)), slow_factor=2.0)]
    assert synchronous_step_seconds(times) == pytest.approx(1.2, rel=1e-12)


# Independence


LIBRARIES = {"__future__", "collections", "dataclasses", "math", "typing", "numpy", "scipy", "distsim"}


def test_theory_knows_no_clock_no_network_and_no_trace() -> None:
    for path in Path(inspect.getfile(distsim.theory)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                parts = str(name).split(".")
                assert parts[0] in LIBRARIES
                if parts[0] == "distsim":
                    assert parts[1] in {"arrays", "compute", "distributions", "errors", "theory"}, (path.name, name)
