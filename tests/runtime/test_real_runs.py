"""Real runs give the trace that their scenario asks for: the same draws, the rule's decisions, the invariants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from distsim import Scenario, Trace
from distsim.progress import Phase
from distsim.runtime.expected_time import expected_seconds
from distsim.runtime.measure import measure, measure_all
from distsim.trace import SpanKind, violations

pytestmark = [pytest.mark.real, pytest.mark.alone]
STEPS, WORKERS = 8, 3
GRADIENT_BYTES = 64 * 1024


def scenario(name: str, policy: dict[str, Any], communication: dict[str, Any], **changes: Any) -> Scenario:
    table = {
        "name": name,
        "steps": STEPS,
        "seed": 7,
        "cluster": {"workers": WORKERS, "bandwidth": "1 Gbit/s", "latency": "0 s"},
        "compute": {"distribution": "lognormal", "mean": "10 ms", "cv": 0.3},
        "workload": {"gradient": "64 KiB", "batch": 1},
        "policy": policy,
        "communication": communication,
    }
    return Scenario.of(table | changes)


SLOW_THIRD = {"distribution": "lognormal", "mean": "10 ms", "cv": 0.3, "slow": {"2": 3.0}}
RESTLESS = {"distribution": "exponential", "mean": "300 us"}
SERVER = {"kind": "parameter_server"}
FIFO = SERVER | {"receive": "fifo"}
SYNCHRONOUS, DROPPING = {"kind": "synchronous"}, {"kind": "backup", "backups": 1}
CANCELLING = DROPPING | {"cancel": True}
WITH_SERVER = [
    scenario("concurrent", SYNCHRONOUS, SERVER),
    scenario("fifo", SYNCHRONOUS, FIFO),
    scenario("dropping", DROPPING, SERVER, compute=SLOW_THIRD),
    scenario("cancelling", CANCELLING, SERVER, compute=SLOW_THIRD | {"slow": {"2": 8.0}}),
    # Answers, pushes and cancellations cross each other all the time here.
    scenario("restless dropping", DROPPING, SERVER, compute=RESTLESS, steps=200),
    scenario("restless cancelling", CANCELLING, SERVER, compute=RESTLESS, steps=200),
    scenario("restless cancelling fifo", CANCELLING, FIFO, compute=RESTLESS, steps=200),
]
WITH_SERVER_NAMES = [one.name for one in WITH_SERVER]
RING = scenario("ring", SYNCHRONOUS, {"kind": "ring"})


class Runs:
    """Measured once for all tests of this file; measured again where a busy machine spoiled the times."""

    def __init__(self) -> None:
        self.reported: list[Phase] = []
        self.reported_by_peers: list[Phase] = []
        self.traces: dict[str, Trace] = {}
        self.measure()

    def measure(self) -> None:
        self.reported.clear()
        self.reported_by_peers.clear()
        ring = measure(RING, progress=self.reported_by_peers.append)
        traces = measure_all(WITH_SERVER, progress=self.reported.append)
        self.traces = {trace.scenario.name: trace for trace in [ring, *traces]}


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    return Runs()


ALL_NAMES = ["ring", *WITH_SERVER_NAMES]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_invariants_hold(runs: Runs, name: str) -> None:
    assert violations(runs.traces[name]) == []


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_update_is_made_of_the_gradients_its_policy_waits_for(runs: Runs, name: str) -> None:
    trace = runs.traces[name]
    needed = WORKERS - getattr(trace.scenario.policy, "backups", 0)
    applied = trace.contributions.where(trace.contributions.applied)
    assert trace.updates.version.tolist() == list(range(1, trace.scenario.steps + 1))
    assert (
        np.bincount(applied.version, minlength=trace.scenario.steps + 1)[1:].tolist() == [needed] * trace.scenario.steps
    )
    assert (trace.contributions.staleness == 0).all()


@pytest.mark.parametrize("name", ["ring", "concurrent", "fifo"])
def test_synchronous_runs_lose_no_gradient(runs: Runs, name: str) -> None:
    assert runs.traces[name].contributions.applied.all()
    assert len(runs.traces[name].contributions) == WORKERS * STEPS


def test_late_gradients_are_dropped_and_the_late_worker_skips_versions(runs: Runs) -> None:
    contributions = runs.traces["dropping"].contributions
    dropped = contributions.where(~contributions.applied)
    assert len(dropped) > 0
    assert not dropped.cancelled.any()
    assert set(dropped.worker.tolist()) == {2}
    assert (dropped.read_version > dropped.step).any(), "it reads the newest version, of which it has missed some"


def test_cancelled_workers_stop_and_take_part_in_every_version(runs: Runs) -> None:
    trace = runs.traces["cancelling"]
    cancelled = trace.contributions.where(trace.contributions.cancelled)
    assert set(cancelled.worker.tolist()) == {2}
    assert sorted(cancelled.read_version.tolist()) == list(range(STEPS))
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    slow = compute.where(compute.worker == 2)
    assert len(slow) == STEPS
    drawn = trace.scenario.compute_times().first(2, STEPS)[:STEPS]
    assert (slow.end_seconds - slow.start_seconds < drawn).all()
    assert (slow.end_seconds >= trace.updates.time_seconds).all(), "a step is cancelled by an update and not before"


def excess_share(trace: Trace) -> np.ndarray[Any, Any]:
    """(measured - drawn) / drawn of all computes that were not cancelled."""
    times, contributions = trace.scenario.compute_times(), trace.contributions
    rows = contributions.where(~contributions.cancelled)
    drawn = {
        (worker, step): times(worker, version)
        for worker, step, version in zip(
            rows.worker.tolist(), rows.step.tolist(), rows.read_version.tolist(), strict=True
        )
    }
    compute = trace.spans.of_kind(SpanKind.COMPUTE)
    seconds = compute.end_seconds - compute.start_seconds
    keys = list(zip(compute.worker.tolist(), compute.step.tolist(), strict=True))
    return np.array([took / drawn[key] - 1 for key, took in zip(keys, seconds.tolist(), strict=True) if key in drawn])


@pytest.mark.parametrize("name", ["ring", "concurrent", "fifo", "dropping", "cancelling"])
def test_compute_takes_the_seeded_time_of_the_scenario(runs: Runs, name: str) -> None:
    shares = excess_share(runs.traces[name])
    assert len(shares) >= STEPS
    assert (shares > -1e-3).all(), "nobody computes less than was drawn"
    if np.median(shares) > 0.05:
        runs.measure()  # somebody else had the cores
        shares = excess_share(runs.traces[name])
    assert np.median(shares) < 0.05


def test_a_backends_all_reduce_shows_no_transfers(runs: Runs) -> None:
    assert len(runs.traces["ring"].transfers) == 0
    reduced = runs.traces["ring"].spans.of_kind(SpanKind.ALL_REDUCE)
    assert len(reduced) == WORKERS * STEPS
    assert (reduced.bytes == GRADIENT_BYTES).all()


@pytest.mark.parametrize("name", ["concurrent", "fifo"])
def test_every_push_and_every_pull_is_a_transfer(runs: Runs, name: str) -> None:
    transfers = runs.traces[name].transfers
    assert len(transfers) == 2 * WORKERS * STEPS
    assert (transfers.bytes == GRADIENT_BYTES).all()
    assert ((transfers.source == WORKERS) ^ (transfers.target == WORKERS)).all()


def test_a_fifo_server_takes_one_push_at_a_time(runs: Runs) -> None:
    received = runs.traces["fifo"].spans.of_kind(SpanKind.RECEIVE)
    received = received.where(received.worker == WORKERS)
    order = np.argsort(received.start_seconds)
    assert (received.start_seconds[order][1:] >= received.end_seconds[order][:-1]).all()


@pytest.mark.parametrize("name", ["ring", "concurrent", "fifo", "dropping", "restless dropping"])
def test_a_worker_does_one_thing_after_the_other(runs: Runs, name: str) -> None:
    trace = runs.traces[name]
    for worker in range(WORKERS):
        own = trace.spans.where(trace.spans.worker == worker)
        order = np.lexsort((own.end_seconds, own.start_seconds))
        assert (own.start_seconds[order][1:] - own.end_seconds[order][:-1] > -1e-9).all()


def test_the_clock_starts_when_the_last_rank_has_left_the_barrier(runs: Runs) -> None:
    for trace in runs.traces.values():
        compute = trace.spans.of_kind(SpanKind.COMPUTE)
        first = compute.start_seconds[compute.step == 0]
        assert len(first) == WORKERS
        assert first.max() <= 1e-9
        assert trace.metadata["clock"]["start_spread_seconds"] >= -first.min()


def test_the_record_says_what_ran_where(runs: Runs) -> None:
    for name, trace in runs.traces.items():
        assert trace.producer == "measured"
        assert (trace.workers, trace.servers) == (WORKERS, int(name != "ring"))
        assert trace.metadata["seed"] == 7
        assert {"python", "torch", "distsim"} <= trace.metadata["versions"].keys()
        assert trace.metadata["host"]["backend"] == "gloo"
    assert runs.traces["ring"].scenario == RING


def test_progress_counts_the_steps_of_all_scenarios(runs: Runs) -> None:
    steps = sum(one.steps for one in WITH_SERVER)
    done = [phase.done for phase in runs.reported]
    assert {phase.of for phase in runs.reported} == {steps}
    assert done == sorted(done)
    assert done[-1] == steps
    assert len(done) > 2
    assert (runs.reported_by_peers[-1].done, runs.reported_by_peers[-1].of) == (STEPS, STEPS)


def test_progress_tells_what_the_run_does_and_how_long_it_should_take(runs: Runs) -> None:
    told = list(dict.fromkeys(phase.doing for phase in runs.reported_by_peers))
    ranks = f"{RING.cluster.workers} processes"
    assert told[0] == f"starting {ranks}"
    assert any(re.fullmatch(f"step [2-9] of {STEPS}", doing) for doing in told)
    assert told[-1] == "merging the records"
    expected = {phase.seconds for phase in runs.reported_by_peers}
    assert expected == {expected_seconds([RING])}
    last = f"run {len(WITH_SERVER)} of {len(WITH_SERVER)}, step "
    assert any(phase.doing.startswith(last) for phase in runs.reported)
