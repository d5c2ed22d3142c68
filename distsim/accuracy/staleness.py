"""Asynchronous and stale synchronous training: update rate, staleness, and the two limits of the bound.

Sources: Dutta et al. 2018, Slow and Stale Gradients Can Win the Race (arXiv 1803.01113); Ho et al. 2013, More
effective distributed ML via a stale synchronous parallel parameter server.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distsim.accuracy.claim import Claim, all_exactly, exactly, on_average
from distsim.accuracy.free_communication import EXPONENTIAL, free
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.order_statistics import WorkerTime
from distsim.theory.staleness import asynchronous_seconds_per_update, mean_staleness, staleness_probability
from distsim.theory.stragglers import worker_times
from distsim.trace import SpanKind, Trace

WORKERS = (8, 32)
STEPS = 100  # per worker and run; the first tenth of the updates is left out
SEEDS = 40
UNBOUNDED = 10**9


def claims() -> list[Claim]:
    """Asynchronous training in the long run, and stale synchronous training between its limits."""
    return _asynchronous() + _limits()


def _asynchronous() -> list[Claim]:
    """Updates at rate N / E[X]; N - 1 updates by others meanwhile, geometric for exponential times."""
    rows = []
    for workers in WORKERS:
        scenario = free({"kind": "asynchronous"}, EXPONENTIAL, workers, STEPS)
        times: list[WorkerTime] = worker_times(scenario.compute, workers)
        runs = [_long_run(simulate(scenario.replacing({"seed": seed}))) for seed in range(SEEDS)]
        gap, staleness, fresh = np.transpose(runs)
        case = f"asynchronous, N = {workers}"
        rows += [
            on_average(f"{case}: seconds per update", asynchronous_seconds_per_update(times), gap),
            on_average(f"{case}: mean staleness", mean_staleness(workers), staleness),
            on_average(f"{case}: share of staleness 0", staleness_probability(0, workers), fresh),
        ]
    return rows


def _long_run(trace: Trace) -> tuple[float, float, float]:
    """Seconds per update, mean staleness and the share of staleness 0, without the first tenth."""
    first = len(trace.updates) // 10
    times, staleness = trace.updates.time_seconds, trace.contributions.staleness[first:]
    gap = (times[-1] - times[first]) / (len(times) - 1 - first)
    return float(gap), float(staleness.mean()), float((staleness == 0).mean())


def _limits() -> list[Claim]:
    """Stale synchronous training with bound 0 is synchronous training; without a bound it is asynchronous training."""
    rows = []
    for receive in ("fifo", "concurrent"):
        synchronous = simulate(_limit({"kind": "synchronous"}, receive))
        zero = simulate(_limit({"kind": "stale_synchronous", "staleness": 0}, receive))
        asynchronous = simulate(_limit({"kind": "asynchronous"}, receive))
        unbounded = simulate(_limit({"kind": "stale_synchronous", "staleness": UNBOUNDED}, receive))
        rows += [
            exactly(f"s = 0 is synchronous, {receive}: total", synchronous.total_seconds, zero.total_seconds),
            all_exactly(f"s = 0 is synchronous, {receive}: compute", _computes(synchronous), _computes(zero)),
            all_exactly(f"s = ∞ is asynchronous, {receive}: compute", _computes(asynchronous), _computes(unbounded)),
            all_exactly(
                f"s = ∞ is asynchronous, {receive}: updates",
                asynchronous.updates.time_seconds, unbounded.updates.time_seconds,
            ),
        ]  # fmt: skip
    return rows


def _limit(policy: dict[str, Any], receive: str) -> Scenario:
    """Four workers that wait for the server's link."""
    return Scenario.of(
        {
            "steps": 20,
            "seed": 3,
            "cluster": {"workers": 4, "bandwidth": "200 MB/s", "latency": "100 us"},
            "compute": {"distribution": "lognormal", "mean": "10 ms", "cv": 0.5},
            "workload": {"gradient": "1 MB"},
            "policy": policy,
            "communication": {"kind": "parameter_server", "receive": receive},
        }
    )


def _computes(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Starts and ends of all compute spans, by worker and step."""
    spans = trace.spans.of_kind(SpanKind.COMPUTE).sorted()
    spans = spans.where(np.lexsort((spans.step, spans.worker)))
    return np.concatenate([spans.start_seconds, spans.end_seconds])
