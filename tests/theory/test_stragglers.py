"""Steps of synchronous training against drawing, against shared links followed by hand, and against SimGrid."""

from __future__ import annotations

import ast
import inspect
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distsim.theory
from distsim.accuracy import simgrid
from distsim.compute import Compute, ComputeTimes
from distsim.distributions import Constant, Distribution, Empirical, Exponential, Lognormal, Pareto, Uniform
from distsim.errors import InputError
from distsim.theory.collectives import parameter_server_seconds, ring_all_reduce_seconds
from distsim.theory.order_statistics import WorkerTime
from distsim.theory.stragglers import (
    cancelled_backup_step_seconds,
    expected_parameter_server_step_seconds,
    expected_ring_step_seconds,
    parameter_server_step_seconds,
    ring_step_seconds,
    synchronous_step_seconds,
    worker_times,
)

SIMGRID = simgrid.read()
TRAINING = [case for case in SIMGRID["cases"] if case["algorithm"] == "train_ps"]
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
    ring = ring_step_seconds(rows, 4e6, 1.25e8, 1e-4)
    error = ring.std() / math.sqrt(steps)
    assert abs(ring.mean() - expected_ring_step_seconds(times, 4e6, 1.25e8, 1e-4)) <= 4 * error


def test_replayed_columns_are_the_workers_own_times(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("0.1 0.5\n0.3 0.7\n", "utf-8")
    times = worker_times(Compute(distribution="replay", file=str(path), slow={1: 2.0}), workers=2)
    assert times == [WorkerTime(Empirical((0.1, 0.3))), WorkerTime(Empirical((0.5, 0.7)), slow_factor=2.0)]
    assert synchronous_step_seconds(times) == pytest.approx(1.2, rel=1e-12)


# Steps of given times


def last_push_by_hand(compute: list[float], size: float, speed: float, latency: float) -> float:
    """When the last of these pushes is in: at each arrival and end, the server's link is shared anew."""
    ready = sorted(time + latency for time in compute)
    remaining: list[float] = []
    now = 0.0
    while ready or remaining:
        rate = speed / len(remaining) if remaining else 0.0
        end = now + min(remaining) / rate if remaining else math.inf
        start = ready[0] if ready else math.inf
        then = min(end, start)
        remaining = [left - rate * (then - now) for left in remaining]
        if end <= start:
            remaining.remove(min(remaining))
        else:
            remaining.append(size)
            ready.pop(0)
        now = then
    return now


@given(
    st.lists(st.floats(0.0, 2.0), min_size=1, max_size=9),
    st.floats(1e3, 1e8), st.floats(1e7, 1e9), st.floats(0.0, 0.1),
)  # fmt: skip
def test_server_steps_against_sharing_the_link_by_hand(
    compute: list[float], size: float, speed: float, latency: float
) -> None:
    expected = last_push_by_hand(compute, size, speed, latency) + len(compute) * size / speed + latency
    assert parameter_server_step_seconds(np.array(compute), size, speed, latency) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.floats(0.0, 2.0), min_size=1, max_size=9), st.floats(1e3, 1e8), st.floats(0.0, 0.1))
def test_ring_steps_against_a_ring_by_hand(compute: list[float], size: float, latency: float) -> None:
    """Rendezvous: a round of rank i starts when i and i + 1 have ended theirs, and i - 1 has sent."""
    clock, p, speed = np.array(compute), len(compute), 1e9
    for _ in range(2 * (p - 1)):
        sent = np.maximum(clock, np.roll(clock, -1)) + latency + size / p / speed
        clock = np.maximum(sent, np.roll(sent, 1))
    step = ring_step_seconds(np.array(compute), size, speed, latency)
    assert step == pytest.approx(clock.max(), rel=1e-9)


@pytest.mark.parametrize("case", TRAINING, ids=lambda case: case["case"])
def test_server_steps_add_up_to_simgrids_training_run(case: dict[str, object]) -> None:
    table = np.array(simgrid.compute_table(SIMGRID["inputs"][case["input"]]))
    assert table.shape == (50, case["N"])
    steps = parameter_server_step_seconds(table, case["S_bytes"], case["B_bytes_per_s"], 2 * case["L_s_per_link"])
    assert math.fsum(steps) == pytest.approx(case["makespan_s"], rel=1e-9)


def test_steps_of_equal_times_are_compute_and_an_all_reduce() -> None:
    rows = np.full((3, 4), 0.05)
    link = (4e6, 1.25e8, 1e-4)
    assert ring_step_seconds(rows, *link) == pytest.approx(0.05 + ring_all_reduce_seconds(4e6, 4, *link[1:]), rel=1e-12)
    server = 0.05 + parameter_server_seconds(4e6, 4, *link[1:])
    assert parameter_server_step_seconds(rows, *link) == pytest.approx(server, rel=1e-12)


def test_steps_have_the_shape_of_the_table_without_its_workers() -> None:
    rows = np.random.default_rng(0).random((2, 3, 4))
    for formula in (ring_step_seconds, parameter_server_step_seconds):
        steps = formula(rows, 1e6, 1e9, 0.0)
        assert steps.shape == (2, 3)
        assert steps[1, 2] == formula(rows[1, 2], 1e6, 1e9, 0.0)


# The mean step with a parameter server


SERVERS: list[tuple[Distribution, int, float]] = [
    (Exponential(1.0), 4, 0.1),
    (Exponential(1.0), 8, 0.3),
    (Lognormal(1.0, 0.3), 16, 0.05),
    (Uniform(1.0, 0.3), 8, 0.1),
    (Pareto(1.0, 3.0), 6, 0.2),
    (Empirical((0.5, 1.0, 1.2, 2.0)), 5, 0.15),
]


@pytest.mark.parametrize("pausing", [0.0, 0.1])
@pytest.mark.parametrize(("distribution", "workers", "transfer"), SERVERS)
def test_mean_server_step_against_drawing(
    distribution: Distribution, workers: int, transfer: float, pausing: float
) -> None:
    generator = np.random.default_rng(17)
    rows = distribution.sample(generator, 100_000 * workers).reshape(-1, workers)
    rows = rows + 2.0 * (generator.random(rows.shape) < pausing)
    steps = parameter_server_step_seconds(rows, transfer * 1e9, 1e9, 1e-3)
    error = steps.std() / math.sqrt(len(steps))
    time = WorkerTime(distribution, pause_probability=pausing, pause_seconds=2.0)
    found = expected_parameter_server_step_seconds(time, workers, transfer * 1e9, 1e9, 1e-3)
    assert abs(steps.mean() - found) <= 4 * error


@pytest.mark.parametrize("transfer", [0.0, 0.05, 0.4, 3.0])
def test_mean_server_step_of_few_recorded_times_against_all_cases(transfer: float) -> None:
    recorded = (0.3, 0.9, 1.0)
    rows = np.array(list(product(recorded, repeat=4)))
    expected = parameter_server_step_seconds(rows, transfer * 1e8, 1e8, 0.01).mean()
    found = expected_parameter_server_step_seconds(WorkerTime(Empirical(recorded)), 4, transfer * 1e8, 1e8, 0.01)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("transfer", [0.03, 0.2])
def test_mean_server_step_of_many_workers_with_two_times_against_all_cases(transfer: float) -> None:
    rows = np.array(list(product((0.3, 1.0), repeat=12)))
    chance = np.where(rows == 1.0, 0.25, 0.75).prod(axis=1)
    expected = chance @ parameter_server_step_seconds(rows, transfer * 1e8, 1e8, 0.0)
    time = WorkerTime(Empirical((0.3, 0.3, 0.3, 1.0)))
    found = expected_parameter_server_step_seconds(time, 12, transfer * 1e8, 1e8, 0.0)
    assert found == pytest.approx(expected, rel=1e-9)
    paused = WorkerTime(Constant(0.3), pause_probability=0.25, pause_seconds=0.7)
    assert expected_parameter_server_step_seconds(paused, 12, transfer * 1e8, 1e8, 0.0) == pytest.approx(
        found, rel=1e-9
    )


@pytest.mark.parametrize("workers", [1, 2, 20])
def test_mean_server_step_at_its_limits(workers: int) -> None:
    for time, transfer in product((ONE, WorkerTime(Lognormal(1.0, 0.3), 1.0, 0.1, 2.0)), (0.0, 1e-17, 1e-12)):
        free = expected_parameter_server_step_seconds(time, workers, transfer, 1.0, 0.0)
        assert free == pytest.approx(synchronous_step_seconds([time] * workers), rel=1e-9)
    constant = expected_parameter_server_step_seconds(WorkerTime(Constant(0.1)), workers, 1e8, 1e9, 1e-3)
    assert constant == pytest.approx(0.1 + parameter_server_seconds(1e8, workers, 1e9, 1e-3), rel=1e-9)
    # Transfers that dwarf the differences: the server's link never rests after the first push.
    busy = expected_parameter_server_step_seconds(ONE, workers, 1e12, 1e9, 0.0)
    assert busy == pytest.approx(1 / workers + 2 * workers * 1e3, rel=1e-9)


def test_two_workers_and_a_server_by_hand() -> None:
    """Exponential times, transfer s: the last push is in at max(X1 + 2 s, X2 + s) of the sorted times, so at
    X1 + s + max(s, X2 - X1); X2 - X1 is exponential too, and E[max(s, D)] = s + exp(-s)."""
    s = 0.7
    expected = 1 / 2 + s + (s + math.exp(-s)) + 2 * s
    assert expected_parameter_server_step_seconds(ONE, 2, s, 1.0, 0.0) == pytest.approx(expected, rel=1e-9)


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
