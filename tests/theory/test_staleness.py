"""Asynchronous training against merged renewal processes, the simulator and the rules themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from distsim.accuracy.free_communication import EXPONENTIAL, free
from distsim.distributions import Constant, Distribution, Exponential, Lognormal, Pareto, Uniform
from distsim.engine import story
from distsim.errors import InputError
from distsim.policies.stale_synchronous import StaleSynchronousRule
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.order_statistics import WorkerTime
from distsim.theory.staleness import (
    asynchronous_gradients_speed_up,
    asynchronous_seconds_per_update,
    asynchronous_seconds_per_update_bounds,
    asynchronous_updates_speed_up,
    collision_share,
    implicit_momentum,
    mean_staleness,
    stale_synchronous_staleness_bound,
    stale_synchronous_step_seconds_bounds,
    staleness_probability,
)
from distsim.trace import Trace

ONE = WorkerTime(Exponential(1.0))
WAYS = [(receive, sends) for receive in ("fifo", "concurrent") for sends in ("rendezvous", "eager")]


def merged(distribution: Distribution, workers: int, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Free communication: the times and workers of all updates until the first worker has made `steps`."""
    draws = distribution.sample(np.random.default_rng(seed), workers * steps).reshape(workers, steps)
    times = np.cumsum(draws, axis=1)
    order = np.argsort(times, axis=None, kind="stable")
    order = order[times.ravel()[order] <= times[:, -1].min()]
    return times.ravel()[order], order // steps


def staleness_of(workers_in_order: np.ndarray) -> np.ndarray:
    """Updates of others since the same worker's update before, in the order of updates; the first ones left out."""
    found = np.full(len(workers_in_order), -1)
    for worker in np.unique(workers_in_order):
        own = np.flatnonzero(workers_in_order == worker)
        found[own[1:]] = np.diff(own) - 1
    return found[found >= 0]


def four_errors(samples: list[float]) -> float:
    return 4 * float(np.std(samples, ddof=1)) / math.sqrt(len(samples))


# Free communication


@pytest.mark.parametrize("distribution", [Exponential(2.0), Lognormal(0.5, 1.0), Uniform(1.0, 0.3), Pareto(1.0, 3.0)])
def test_updates_per_second_against_merged_renewals(distribution: Distribution) -> None:
    found = []
    for seed in range(40):
        times, _ = merged(distribution, 5, 400, seed)
        half = len(times) // 2
        found.append((times[-1] - times[half]) / (len(times) - 1 - half))
    expected = asynchronous_seconds_per_update([WorkerTime(distribution)] * 5)
    assert expected == pytest.approx(distribution.mean_seconds / 5, rel=1e-12)
    assert abs(np.mean(found) - expected) <= four_errors(found)


def test_workers_that_differ_add_their_rates() -> None:
    times = [WorkerTime(Exponential(1.0)), WorkerTime(Constant(2.0)), WorkerTime(Exponential(1.0), 2.0, 0.5, 4.0)]
    assert asynchronous_seconds_per_update(times) == pytest.approx(1 / (1 + 1 / 2 + 1 / 4), rel=1e-12)


@pytest.mark.parametrize("distribution", [Exponential(1.0), Lognormal(1.0, 0.3), Pareto(1.0, 3.0)])
@pytest.mark.parametrize("workers", [2, 8])
def test_mean_staleness_against_merged_renewals(distribution: Distribution, workers: int) -> None:
    found = []
    for seed in range(30):
        staleness = staleness_of(merged(distribution, workers, 500, seed)[1])
        found.append(float(staleness[len(staleness) // 10 :].mean()))
    assert abs(np.mean(found) - mean_staleness(workers)) <= max(four_errors(found), 0.005 * workers)


def test_staleness_is_geometric_for_exponential_times() -> None:
    for workers in (2, 8):
        runs = [staleness_of(merged(Exponential(1.0), workers, 500, seed)[1]) for seed in range(30)]
        for k in (0, 1, 5, 12):
            found = [float((staleness == k).mean()) for staleness in runs]
            assert abs(np.mean(found) - staleness_probability(k, workers)) <= four_errors(found) + 1e-4


@pytest.mark.parametrize("workers", [1, 2, 8, 100])
def test_the_geometric_law_has_total_one_and_the_mean_of_every_law(workers: int) -> None:
    law = np.array([staleness_probability(k, workers) for k in range(60 * workers)])
    assert law.sum() == pytest.approx(1.0, rel=1e-12)
    assert law @ np.arange(len(law)) == pytest.approx(mean_staleness(workers), rel=1e-12)
    assert law[0] == pytest.approx(1 / workers, rel=1e-12)


@pytest.mark.parametrize("workers", [8, 100])
def test_asynchronous_against_synchronous_updates(workers: int) -> None:
    harmonic = sum(1 / i for i in range(1, workers + 1))
    assert asynchronous_updates_speed_up([ONE] * workers) == pytest.approx(workers * harmonic, rel=1e-9)
    assert asynchronous_gradients_speed_up([ONE] * workers) == pytest.approx(harmonic, rel=1e-9)


def test_nothing_is_gained_per_gradient_where_nothing_varies() -> None:
    assert asynchronous_gradients_speed_up([WorkerTime(Constant(0.3))] * 7) == pytest.approx(1.0, rel=1e-9)


# One server


def simulated(
    workers: int,
    mean: str,
    receive: str,
    sends: str,
    distribution: str = "constant",
    steps: int = 40,
    work: float = 0.0,
) -> Trace:
    return story.run(
        Scenario.loads(
            f"""
            steps = {steps}
            seed = 5
            cluster = {{ workers = {workers}, bandwidth = "1 GB/s", latency = "1 ms" }}
            compute = {{ mean = "{mean}", distribution = "{distribution}" }}
            workload = {{ gradient = "5 MB" }}
            policy = {{ kind = "asynchronous" }}
            communication = {{ kind = "parameter_server", receive = "{receive}", sends = "{sends}" }}
            """
        ),
        work,
    )


LINK = (5e6, 1e9, 1e-3)


@pytest.mark.parametrize(("receive", "sends"), WAYS)
@pytest.mark.parametrize(("workers", "mean", "seconds"), [(1, "50 ms", 0.05), (3, "2 ms", 0.002), (8, "50 ms", 0.05)])
def test_constant_times_reach_the_bounds(workers: int, mean: str, seconds: float, receive: str, sends: str) -> None:
    """A fifo server the lower one; a concurrent one keeps all in step and reaches the upper one."""
    ends = simulated(workers, mean, receive, sends).updates.time_seconds
    found = (ends[-1] - ends[-1 - 20 * workers]) / (20 * workers)
    times = [WorkerTime(Constant(seconds))] * workers
    lower, upper = asynchronous_seconds_per_update_bounds(times, *LINK, receive=receive, sends=sends)
    assert found == pytest.approx(lower if receive == "fifo" else upper, rel=1e-9)


@pytest.mark.parametrize("sends", ["rendezvous", "eager"])
@pytest.mark.parametrize(("workers", "mean", "seconds"), [(2, "50 ms", 0.05), (8, "2 ms", 0.002)])
def test_the_servers_own_work_is_part_of_a_fifo_turn(workers: int, mean: str, seconds: float, sends: str) -> None:
    ends = simulated(workers, mean, "fifo", sends, work=0.003).updates.time_seconds
    found = (ends[-1] - ends[-1 - 20 * workers]) / (20 * workers)
    times = [WorkerTime(Constant(seconds))] * workers
    lower, _ = asynchronous_seconds_per_update_bounds(times, *LINK, apply_seconds=0.003, receive="fifo", sends=sends)
    assert found == pytest.approx(lower, rel=1e-9)


@pytest.mark.parametrize("work", [0.0, 0.007])
@pytest.mark.parametrize(("receive", "sends"), WAYS)
def test_exponential_times_lie_between_the_bounds(receive: str, sends: str, work: float) -> None:
    for mean, seconds in (("100 ms", 0.1), ("30 ms", 0.03), ("2 ms", 0.002)):
        ends = simulated(6, mean, receive, sends, "exponential", steps=120, work=work).updates.time_seconds
        found = (ends[-1] - ends[60]) / (len(ends) - 61)
        times = [WorkerTime(Exponential(seconds))] * 6
        lower, upper = asynchronous_seconds_per_update_bounds(
            times, *LINK, apply_seconds=work, receive=receive, sends=sends
        )
        error = 4 * seconds / 6 / math.sqrt(len(ends))
        assert lower - error <= found <= upper + error


@pytest.mark.parametrize("receive", ["fifo", "concurrent"])
def test_every_update_ages_one_gradient_of_every_other_worker(receive: str) -> None:
    """The sum of all staleness, of gradients still under way too, is P - 1 per update, exactly."""
    workers = 5
    trace = simulated(workers, "20 ms", receive, "rendezvous", "exponential")
    made = trace.contributions
    staleness = made.version[made.applied] - 1 - made.read_version[made.applied]
    updates = len(trace.updates)
    last_made = [int(made.version[made.applied & (made.worker == worker)].max()) for worker in range(workers)]
    under_way = sum(updates - version for version in last_made)
    assert staleness.sum() + under_way == mean_staleness(workers) * updates


# Stale synchronous


def staleness_of_order(rule: StaleSynchronousRule, order: list[int], workers: int) -> list[int]:
    """The staleness of each gradient when workers arrive in this order; who waits for an answer is passed over."""
    read = dict.fromkeys(range(workers), 0)
    found = []
    for worker in order:
        if worker in read:
            version = read.pop(worker)
            decision = rule.arrived(worker, 0, version)
            assert decision.version is not None
            found.append(decision.version - 1 - version)
            read |= dict(decision.answers)
    return found


@pytest.mark.parametrize("bound", [0, 1, 3])
@pytest.mark.parametrize("workers", [2, 4])
def test_the_staleness_bound_holds_and_is_reached(workers: int, bound: int) -> None:
    limit = stale_synchronous_staleness_bound(workers, bound)
    generator = np.random.default_rng(1)
    for _ in range(20):
        weights = generator.dirichlet(np.full(workers, 0.3))
        order = generator.choice(workers, size=400, p=weights).tolist()
        assert max(staleness_of_order(StaleSynchronousRule(workers, bound), order, workers)) <= limit
    # Worker 0 runs ahead as far as it may, and then computes while the others pass it as far as they may.
    others = [worker for _ in range(2 * bound + 1) for worker in range(1, workers)]
    worst = [0] * bound + others + [0]
    assert staleness_of_order(StaleSynchronousRule(workers, bound), worst, workers)[-1] == limit


def stale_synchronous_by_hand(draws: np.ndarray, bound: int) -> float:
    """Free communication: a step begins when its worker's last is over, and everyone's s + 1 steps before is."""
    workers, steps = draws.shape
    ends = np.zeros((workers, steps + 1))
    for step in range(steps):
        slack = ends[:, step - bound].max() if step >= bound else 0.0
        ends[:, step + 1] = np.maximum(ends[:, step], slack) + draws[:, step]
    return float(ends[:, -1].max()) / steps


def test_stale_synchronous_steps_lie_between_the_slowest_worker_and_the_slowest_draw() -> None:
    times = [ONE, ONE, ONE, WorkerTime(Exponential(1.0), slow_factor=1.5)]
    lower, upper = stale_synchronous_step_seconds_bounds(times)
    assert lower == 1.5
    runs = []
    for seed in range(30):
        draws = np.random.default_rng(seed).standard_exponential((4, 2000)) * np.array([[1.0], [1.0], [1.0], [1.5]])
        runs.append([stale_synchronous_by_hand(draws, bound) for bound in (0, 1, 4, 200)])
    for slower, faster in zip(np.transpose(runs)[:-1], np.transpose(runs)[1:], strict=True):
        assert (slower >= faster).all()
    at_zero, *_, at_many = np.transpose(runs).tolist()
    assert abs(np.mean(at_zero) - upper) <= four_errors(at_zero)
    assert abs(np.mean(at_many) - lower) <= four_errors(at_many)


# Sparse gradients


@pytest.mark.parametrize(("touched", "staleness"), [(0.01, 16), (0.1, 3), (0.5, 1), (1.0, 2), (0.3, 0)])
def test_collisions_against_drawing(touched: float, staleness: int) -> None:
    parameters = 200_000
    changed = (np.random.default_rng(0).random((staleness, parameters)) < touched).any(axis=0)
    expected = collision_share(touched, staleness)
    error = math.sqrt(expected * (1 - expected) / parameters)
    assert abs(changed.mean() - expected) <= 4 * error + 1e-12


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: mean_staleness(0), "workers = 0"),
        (lambda: staleness_probability(-1, 4), "staleness = -1"),
        (lambda: collision_share(1.5, 4), "touched = 1.5"),
        (lambda: stale_synchronous_staleness_bound(4, -1), "staleness = -1"),
        (lambda: asynchronous_seconds_per_update_bounds([ONE], -1.0, 1e9, 0.0), "num_bytes = -1.0"),
        (lambda: asynchronous_seconds_per_update_bounds([ONE], 1.0, 0.0, 0.0), "bytes_per_second = 0.0"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)


@pytest.mark.parametrize("workers", [1, 2, 5, 16])
def test_random_staleness_moves_the_mean_as_momentum_does(workers: int) -> None:
    """Descent on x^2 / 2 along simulated runs, against the mean's recursion with momentum, update by update."""
    runs, updates, rate = 300, 40, 0.2
    paths = np.ones((runs, updates + 1))
    for run, path in enumerate(paths):
        steps = 5 + 3 * updates // workers  # so that the fastest worker is not done before the last update
        late = simulate(free({"kind": "asynchronous"}, EXPONENTIAL, workers, steps, run)).contributions.staleness
        for update in range(updates):
            path[update + 1] = path[update] - rate * path[update - late[update]]
    momentum, expected = implicit_momentum(workers), [1.0, 1.0 - rate]
    # The first gradient is that of version 0 for all; of N workers one reads the parameters after it.
    for _ in range(updates - 1):
        expected.append(expected[-1] + momentum * (expected[-1] - expected[-2]) - rate / workers * expected[-1])
    allowed = 4.0 * paths.std(axis=0, ddof=1) / math.sqrt(runs) + 1e-12
    assert (np.abs(paths.mean(axis=0) - expected) <= allowed).all()
