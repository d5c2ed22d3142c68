"""Prediction against real runs on emulated links: step times, totals, staleness, drops, and which policy is faster.

`make test-all` runs it whole: four clusters and the bounds as they are meant, for a machine that is left alone. Else
one cluster with wider bounds, which hold beside other work too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import pytest

from distsim.comparison import Comparison, compare
from distsim.machine_accuracy import AMONG_PEERS, GROUPS, RING, SERVER, WITH_SERVER, Kind, Links, runs, scenario_of
from distsim.trace import Trace

pytestmark = [pytest.mark.real, pytest.mark.iproute2, pytest.mark.whole]

TRIES = 2
CLUSTERS = [
    Links("1 MiB", "200 Mbit/s"), Links("4 MiB", "1 Gbit/s"), Links("1 MiB", "1 Gbit/s"), Links("4 MiB", "200 Mbit/s")
]  # fmt: skip
WHOLE_PERCENT, REDUCED_PERCENT = 5.0, 25.0  # of the median step, and of the total
JUDGED = ("synchronous", "local_sgd", "backup", "stale_synchronous", "asynchronous")
RANKED_AMONG_PEERS: Sequence[Kind] = (
    *AMONG_PEERS,
    ({"kind": "local_sgd", "period": 2}, RING),
    ({"kind": "synchronous"}, {"kind": "tree", "implementation": "schedule"}),
    ({"kind": "synchronous"}, {"kind": "halving_doubling", "implementation": "schedule"}),
)
RANKED_WITH_SERVER: Sequence[Kind] = (
    *(kind for kind in WITH_SERVER if kind[0]["kind"] != "flexrr"),
    ({"kind": "asynchronous"}, SERVER | {"receive": "concurrent"}),
)


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
    judged = [[kind for kind in group if kind[0]["kind"] in JUDGED] for group in GROUPS]
    told = [
        f"{cluster.name}: {wrong}"
        for cluster in CLUSTERS[: whole(1, len(CLUSTERS))]
        for group in (judged if whole(0, 1) else [WITH_SERVER[:2]])
        for wrong in wrong_on(cluster, group, WHOLE_PERCENT if whole(0, 1) else REDUCED_PERCENT)
    ]
    assert not told, "\n".join(told)


def wrong_on(cluster: Links, group: Sequence[Kind], percent: float) -> list[str]:
    """What is beyond the bounds on one cluster, of what was beyond them twice."""
    left = [scenario_of(kind, cluster) for kind in group]
    for _ in range(TRIES):
        pairs = zip(left, runs(left, emulate=True), strict=True)
        found = [(one, misses(compare(*pair), percent)) for one, pair in pairs]
        left = [one for one, missed in found if missed]
        if not left:
            break
    return [f"{one.name}: {', '.join(missed)}" for one, missed in found if missed]


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
        for predicted, measured in runs([scenario_of(kind, CLUSTERS[0]) for kind in group], emulate=True)
    ]
    apart = [(one, other) for one, other in combinations(seconds, 2) if abs(one[1] / other[1] - 1) > 0.05]
    right = sum((one[0] < other[0]) == (one[1] < other[1]) for one, other in apart)
    assert apart
    assert right >= 0.9 * len(apart), seconds
