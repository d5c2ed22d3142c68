"""Prediction against real runs on emulated links: step times, totals, staleness, drops, and which policy is faster.

`make test-all` runs it whole: four clusters and the bounds as they are meant, for a machine that is left alone. Else
one cluster with wider bounds, which hold beside other work too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest

from distsim.comparison import Comparison, compare
from distsim.experiment import predict_emulated
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.trace import Trace

pytestmark = [pytest.mark.real, pytest.mark.iproute2, pytest.mark.whole]

WORKERS, STEPS = 4, 16
TRIES = 2
CLUSTERS = [("200 Mbit/s", "1 MiB"), ("1 Gbit/s", "4 MiB"), ("1 Gbit/s", "1 MiB"), ("200 Mbit/s", "4 MiB")]
WHOLE_PERCENT, REDUCED_PERCENT = 5.0, 25.0  # of the median step, and of the total
Pairs = list[tuple[dict[str, Any], dict[str, Any]]]
RING, SERVER = {"kind": "ring"}, {"kind": "parameter_server"}
# In two launches: what runs without a server, and with one.
AMONG_PEERS: Pairs = [
    ({"kind": "synchronous"}, RING),
    ({"kind": "local_sgd", "period": 4}, RING),
]
WITH_SERVER: Pairs = [
    ({"kind": "synchronous"}, SERVER),
    ({"kind": "backup", "backups": 1}, SERVER),
    ({"kind": "stale_synchronous", "staleness": 2}, SERVER),
    ({"kind": "asynchronous"}, SERVER),
]
RANKED_AMONG_PEERS = [
    *AMONG_PEERS,
    ({"kind": "local_sgd", "period": 2}, RING),
    ({"kind": "ddp", "bucket": "256 KiB", "first_bucket": "256 KiB"}, RING),
    ({"kind": "synchronous"}, {"kind": "tree", "implementation": "schedule"}),
    ({"kind": "synchronous"}, {"kind": "halving_doubling", "implementation": "schedule"}),
]
RANKED_WITH_SERVER = [
    *WITH_SERVER,
    ({"kind": "backup", "backups": 1, "cancel": True}, SERVER),
    ({"kind": "asynchronous"}, SERVER | {"receive": "concurrent"}),
]


def scenarios(pairs: Pairs, bandwidth: str, gradient: str) -> list[Scenario]:
    return [
        Scenario.of(
            {
                "name": f"{policy} by {communication}",
                "steps": STEPS,
                "seed": 11,
                "cluster": {"workers": WORKERS, "bandwidth": bandwidth, "latency": "0 s"},
                "compute": {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3},
                "workload": {"gradient": gradient, "batch": 32, "layers": 4},
                "policy": policy,
                "communication": communication,
            }
        )
        for policy, communication in pairs
    ]


def runs(asked: list[Scenario]) -> Iterator[tuple[Trace, Trace]]:
    """Predicted and measured, in one launch."""
    for scenario, measured in zip(asked, measure_all(asked, emulate=True), strict=True):
        yield predict_emulated(scenario, measured.metadata), measured


def misses(found: Comparison, percent: float) -> list[str]:
    """What of a comparison is beyond the bounds."""
    step, total = found.error_pct.step_median, found.error_pct.total
    told = [f"median step error {step:.1f} %"] if step is not None and step > percent else []
    told += [f"total error {total:.1f} %"] if total > percent else []
    ours, theirs = found.predicted, found.measured
    if abs(ours.mean_staleness - theirs.mean_staleness) > 0.1 * theirs.mean_staleness:
        told.append(f"mean staleness {ours.mean_staleness:.2f} for {theirs.mean_staleness:.2f}")
    if abs(ours.dropped_gradients - theirs.dropped_gradients) > max(3, 0.1 * theirs.dropped_gradients):
        told.append(f"{ours.dropped_gradients} dropped gradients for {theirs.dropped_gradients}")
    return told


@pytest.mark.timeout(1800)
def test_what_a_run_on_emulated_links_takes_is_predicted(whole: Callable[[int, int], int]) -> None:
    told = [
        f"{bandwidth}, {gradient}: {wrong}"
        for bandwidth, gradient in CLUSTERS[: whole(1, len(CLUSTERS))]
        for wrong in wrong_on(bandwidth, gradient, [AMONG_PEERS, WITH_SERVER] if whole(0, 1) else [WITH_SERVER[:2]])
    ]
    assert not told, "\n".join(told)


def wrong_on(bandwidth: str, gradient: str, groups: list[Pairs]) -> list[str]:
    """What is beyond the bounds on one cluster, of what was beyond them twice."""
    percent = WHOLE_PERCENT if len(groups) > 1 else REDUCED_PERCENT
    wrong: list[str] = []
    for group in groups:
        left = scenarios(group, bandwidth, gradient)
        for _ in range(TRIES):
            found = [(one, misses(compare(*pair), percent)) for one, pair in zip(left, runs(left), strict=True)]
            left = [one for one, missed in found if missed]
            if not left:
                break
        wrong += [f"{one.name}: {', '.join(missed)}" for one, missed in found if missed]
    return wrong


def seconds_per_gradient(trace: Trace) -> float:
    """Seconds of the run for each gradient that was applied."""
    return trace.total_seconds / int(trace.contributions.applied.sum())


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_which_policy_is_faster_is_predicted() -> None:
    """Of all pairs that differ by more than 5 %, at least 90 % in the right order."""
    seconds = [
        (seconds_per_gradient(predicted), seconds_per_gradient(measured))
        for group in (RANKED_AMONG_PEERS, RANKED_WITH_SERVER)
        for predicted, measured in runs(scenarios(group, "200 Mbit/s", "1 MiB"))
    ]
    apart = [(one, other) for one, other in combinations(seconds, 2) if abs(one[1] / other[1] - 1) > 0.05]
    right = sum((one[0] < other[0]) == (one[1] < other[1]) for one, other in apart)
    assert apart
    assert right >= 0.9 * len(apart), seconds
