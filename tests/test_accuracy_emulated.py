"""Prediction against real runs on emulated links: step times, totals, staleness, drops, and which policy is faster.

The first three tests take the scenario's links; the last two a calibration, of links at 1 and 2 workers alone.

`make test-all` runs it whole: four clusters and the bounds as they are meant, for a machine that is left alone. Else
one cluster with wider bounds, which hold beside other work too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from distsim.calibration import Calibration, CalibrationPlan
from distsim.comparison import Comparison, compare
from distsim.machine_accuracy import (
    AMONG_PEERS,
    GROUPS,
    RING,
    SERVER,
    WITH_SERVER,
    Combination,
    Links,
    runs,
    scenario_of,
)
from distsim.runtime.calibrate import calibrate
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace
from distsim.workload import Model

pytestmark = [pytest.mark.real, pytest.mark.iproute2, pytest.mark.whole, pytest.mark.alone, pytest.mark.more]

TRIES = 2
CLUSTERS = [
    Links("1 MiB", "200 Mbit/s"), Links("4 MiB", "1 Gbit/s"), Links("1 MiB", "1 Gbit/s"), Links("4 MiB", "200 Mbit/s")
]  # fmt: skip
WHOLE_PERCENT, REDUCED_PERCENT = 5.0, 75.0  # of the median step, and of the total
FASTER_PERCENT = 25.0  # of the total; other work makes a run slower, never faster
JUDGED = ("synchronous", "local_sgd", "backup", "stale_synchronous", "asynchronous")
RANKED_AMONG_PEERS: Sequence[Combination] = (
    *AMONG_PEERS,
    ({"kind": "local_sgd", "period": 2}, RING),
    ({"kind": "synchronous"}, {"kind": "tree", "implementation": "schedule"}),
    ({"kind": "synchronous"}, {"kind": "halving_doubling", "implementation": "schedule"}),
)
RANKED_WITH_SERVER: Sequence[Combination] = (
    *(kind for kind in WITH_SERVER if kind[0]["kind"] != "flexrr"),
    ({"kind": "asynchronous"}, SERVER | {"receive": "concurrent"}),
)


def misses(found: Comparison, percent: float) -> list[str]:
    """What of a comparison is beyond the bounds."""
    step, total = found.error_pct.step_median, found.error_pct.total
    told = [f"median step error {step:.1f} %"] if step is not None and step > percent else []
    told += [f"total error {total:+.1f} %"] if not -percent <= total <= min(percent, FASTER_PERCENT) else []
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
        for wrong in wrong_twice(
            [scenario_of(kind, cluster) for kind in group],
            partial(misses, percent=WHOLE_PERCENT if whole(0, 1) else REDUCED_PERCENT),
        )
    ]
    assert not told, "\n".join(told)


def wrong_twice(scenarios: Sequence[Scenario], judge: Callable[[Comparison], list[str]]) -> list[str]:
    """What is beyond the bounds, of the scenarios that were beyond them twice. All have the same number of ranks."""
    left = list(scenarios)
    for _ in range(TRIES):
        pairs = zip(left, runs(left, emulate=True), strict=True)
        found = [(one, judge(compare(*pair))) for one, pair in pairs]
        left = [one for one, missed in found if missed]
        if not left:
            break
    return [f"{one.name}: {', '.join(missed)}" for one, missed in found if missed]


STRAGGLERS = [(1.6, 1), (2.5, 1), (1.6, 2), (1.6, 0)]  # how slow one of four workers is, the bound on staleness
BESIDE_OTHER_WORK_PERCENT = 10.0  # of the staleness, and of a total that is shorter than predicted


@pytest.mark.timeout(900)
def test_what_helping_a_slow_worker_gains_is_predicted(whole: Callable[[int, int], int]) -> None:
    """Total and mean staleness of FlexRR, whose runs were once up to a quarter shorter than predicted, and staler."""
    scenarios = [with_straggler(*case) for case in STRAGGLERS[: whole(2, len(STRAGGLERS))]]
    told = wrong_twice(scenarios, partial(misses_of_help, whole=bool(whole(0, 1))))
    assert not told, "\n".join(told)


def with_straggler(slow: float, staleness: int) -> Scenario:
    return scenario_of(({"kind": "flexrr", "staleness": staleness}, SERVER), Links("1 MiB", "1 Gbit/s")).replacing(
        {
            "name": f"FlexRR({staleness}), one worker {slow} times as slow",
            "steps": 30,
            "seed": 21,
            "compute": {"distribution": "lognormal", "mean": "80 ms", "cv": 0.2, "slow": {2: slow}},
        }
    )


def misses_of_help(found: Comparison, *, whole: bool) -> list[str]:
    """What of a comparison is beyond the bounds. Other work makes a run slower, never faster."""
    least, most = (-WHOLE_PERCENT, WHOLE_PERCENT) if whole else (-REDUCED_PERCENT, BESIDE_OTHER_WORK_PERCENT)
    total, staleness = found.error_pct.total, found.error_pct.staleness
    assert staleness is not None
    told = [f"total error {total:+.1f} %"] if not least <= total <= most else []
    lowest, highest = (-most, most) if whole else (-FASTER_PERCENT, REDUCED_PERCENT)  # what was found once was -29 %
    return told + ([f"error of the staleness {staleness:+.1f} %"] if not lowest <= staleness <= highest else [])


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


MODELS: tuple[Model, ...] = ("cnn", "mlp")
GBIT = 125e6
ONE_BUCKET, SMALL_BUCKETS = "25 MiB", "2 KiB"  # all of the gradient, a layer
DDP_PERCENT = 10.0
NO_PAUSE = 1e-6  # seconds
ORDER_REPEATS = 3


def calibrated(pause: float, repeats: int) -> Calibration:
    """On 1 Gbit/s: links with 1 and 2 workers; models with 3 and 4 at work as well, and pauses of so many seconds."""
    plan = CalibrationPlan(
        workers=(1, 2), busy=(3, 4), sizes=(16e3, 64e3, 256e3), models=MODELS, pause=pause, repeats=repeats,
        bandwidth=GBIT,
    )  # fmt: skip
    return Calibration(machine=calibrate(plan))


def with_ddp(model: Model, workers: int, bucket: str, compute: dict[str, object], steps: int) -> Scenario:
    return Scenario.of(
        {
            "name": f"{model} on {workers}, buckets of {bucket}, {compute['mean']}",
            "steps": steps,
            "seed": 5,
            "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": compute,
            "workload": {"model": model, "batch": 32},
            "policy": {"kind": "ddp", "bucket": bucket, "first_bucket": bucket},
            "communication": {"kind": "ring"},
        }
    )


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_ddp_with_a_model_is_predicted_from_fewer_workers() -> None:
    """Median steps with 3 and 4 workers, each of which draws a mean of 20 or 50 ms besides its real work."""
    drawn = [{"distribution": "lognormal", "mean": mean, "cv": 0.3} for mean in ("20 ms", "50 ms")]
    left = [
        with_ddp(model, workers, bucket, compute, steps=60)
        for workers in (3, 4) for compute in drawn for model in MODELS for bucket in (ONE_BUCKET, SMALL_BUCKETS)
    ]  # fmt: skip
    for _ in range(TRIES):
        calibration = calibrated(0.02, repeats=20)
        errors = [
            (one, compare(simulate(one, calibration), measured).error_pct.step_median)
            for workers in (3, 4)
            for one, measured in measured_pairs([one for one in left if one.cluster.workers == workers])
        ]
        missed = [(one, error) for one, error in errors if error is None or error > DDP_PERCENT]
        left = [one for one, _ in missed]
        if not left:
            break
    assert not missed, "\n".join(f"{one.name}: {error} %" for one, error in missed)


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_whether_small_buckets_are_faster_is_predicted() -> None:
    """Where nothing but the model's own work takes time, and an all-reduce more costs much."""
    calibration = calibrated(NO_PAUSE, repeats=80)
    wrong: list[str] = []
    for workers in (3, 4):
        for model in MODELS:
            pair = [
                with_ddp(model, workers, bucket, {"mean": "1 us"}, steps=60) for bucket in (ONE_BUCKET, SMALL_BUCKETS)
            ]
            ours = [step_seconds(simulate(one, calibration)) for one in pair]
            runs_of_both = np.array([step_seconds(found) for _, found in measured_pairs(pair * ORDER_REPEATS)])
            theirs = np.median(runs_of_both.reshape(ORDER_REPEATS, 2), axis=0)
            if (ours[0] < ours[1]) != (theirs[0] < theirs[1]):
                wrong.append(f"{model} on {workers}: {ours} for {theirs}")
    assert not wrong, "\n".join(wrong)


def measured_pairs(scenarios: Sequence[Scenario]) -> list[tuple[Scenario, Trace]]:
    """Each with its run on emulated links, all of the same number of workers in one launch."""
    return list(zip(scenarios, measure_all(scenarios, emulate=True), strict=True)) if scenarios else []


def step_seconds(trace: Trace) -> float:
    """The median step."""
    return float(np.median(np.diff(trace.updates.time_seconds)))
