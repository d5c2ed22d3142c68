"""A prediction beside its measurement: the errors in percent of the measurement, and their causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distsim.errors import InputError, shown
from distsim.metrics import (
    PARTS,
    Summary,
    percent_error,
    regime,
    staleness_histogram,
    step_durations,
    summary,
    worker_seconds,
)
from distsim.policies import Programmed
from distsim.trace import Trace
from distsim.units import rate, show

CANCEL_SHARE = 0.05  # of the measured total; smaller errors that cancel out are not told
COMPUTE_SHARE = 0.2  # of the predicted computing; a smaller difference is not told
FIRST_NAMED = ("policy.kind", "cluster.workers", "communication.kind")  # messages name a difference in these first
MAY_DIFFER = ("name", "communication.implementation", "compute.added")


@dataclass(frozen=True)
class Error:
    """Errors of a prediction, as predicted - measured: negative where the prediction is too low. None: does not apply.

    step_median: the median over joined steps of |predicted - measured| of the step's duration, in percent of the
    measured duration; the only error without a sign. total: of the time of the last update, in percent of the measured
    one. staleness: of the mean staleness, in percent of the measured one. causes: of compute, communication and
    waiting, in mean worker-seconds; the causes add up to the error of the total in seconds. unmatched: the number of
    steps that only one of the runs has.
    """

    step_median: float | None
    total: float | None
    staleness: float | None
    causes: dict[str, float]
    unmatched: int


@dataclass(frozen=True)
class Comparison:
    """One scenario, predicted and measured. regime: shares of the predicted time, see `metrics.regime`."""

    name: str
    predicted: Summary
    measured: Summary
    error_pct: Error
    regime: dict[str, float] | None

    def cause_words(self, cause: str) -> str:
        """The name of a cause in sentences. In runs with failures, waiting includes the time that failures cost."""
        return "waiting and failures" if cause == "waiting" and self.measured.failures is not None else cause

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `distsim compare --json` prints them."""
        return asdict(self) | {"predicted": self.predicted.as_dict(), "measured": self.measured.as_dict()}


def compare(predicted: Trace, measured: Trace) -> Comparison:
    """Joins two traces of the same scenario step by step. Raises InputError where their scenarios differ.

    Links may differ, since a calibration replaces them; `link_differences` tells where.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("synchronous_ring"))
    >>> compare(trace, trace).error_pct.step_median
    0.0
    """
    for name, trace in (("predicted", predicted), ("measured", measured)):
        trace.check_whole(f"compare({name})")
    _check_same_scenario(predicted, measured)
    steps, unmatched = _step_median(predicted, measured)
    of_predicted, of_measured = summary(predicted), summary(measured)
    return Comparison(
        name=measured.scenario.name,
        predicted=of_predicted,
        measured=of_measured,
        error_pct=Error(
            step_median=steps,
            total=percent_error(of_predicted.total_seconds, of_measured.total_seconds),
            staleness=percent_error(of_predicted.mean_staleness, of_measured.mean_staleness),
            causes=_causes(predicted, measured),
            unmatched=unmatched,
        ),
        regime=regime(predicted),
    )


def _check_same_scenario(predicted: Trace, measured: Trace) -> None:
    differing = {key: values for key, values in _differences(predicted, measured).items() if not _may_differ(key)}
    if differing:
        what, *others = sorted(
            differing, key=lambda key: FIRST_NAMED.index(key) if key in FIRST_NAMED else len(FIRST_NAMED)
        )
        one, other = differing[what]
        more = f" (so must {', '.join(others)})" if others else ""
        raise InputError.of(
            f"{what} of the predicted trace", one, f"must equal the measured one's, {shown(other)}{more}",
            "compare two traces of one scenario",
        )  # fmt: skip


def staleness_distance(one: Trace, other: Trace) -> float:
    """How far the staleness of two runs differs: the total variation distance, from 0 to 1.

    Each staleness has a share of the run's applied gradients. The distance is half the sum of the differences of the
    shares: 0 where all shares are equal, 1 where the runs have no staleness in common. In words: the share of one run's
    gradients whose staleness would have to change. Two runs with different seeds differ by chance.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("backup_server"))
    >>> staleness_distance(trace, trace)
    0.0
    """
    shares = []
    for trace in (one, other):
        histogram = staleness_histogram(trace)
        count = sum(histogram.values())
        if not count:
            raise InputError.of("staleness_distance", trace.producer, "has no applied gradient", "take a longer run")
        shares.append({value: found / count for value, found in histogram.items()})
    ours, theirs = shares
    return 0.5 * sum(abs(ours.get(value, 0.0) - theirs.get(value, 0.0)) for value in ours.keys() | theirs.keys())


def link_differences(predicted: Trace, measured: Trace) -> list[str]:
    """One sentence for each setting of the links in which the prediction differs from the measurement's scenario.

    The list is empty where the prediction is calibrated, since it then uses the measured links.

    >>> from distsim import example, simulate
    >>> ring = example("synchronous_ring")
    >>> link_differences(simulate(ring.replacing({"cluster.latency": "1 ms"})), simulate(ring))
    ["the prediction has cluster.latency = '1 ms', the measurement's scenario '50 us'"]
    """
    if "calibration" in predicted.metadata:
        return []
    return [
        f"the prediction has {key} = {shown(one)}, the measurement's scenario {shown(other)}"
        for key, (one, other) in _differences(predicted, measured).items()
        if _of_links(key)
    ]


def network_difference(predicted: Trace, measured: Trace) -> str | None:
    """Says that a prediction used the scenario's links and its measurement the machine's own; None where it is not so.

    The error then tells the difference of the links more than the quality of the prediction.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("synchronous_ring"))
    >>> network_difference(trace, trace) is None
    True
    """
    of_scenario = predicted.producer == "simulated" and "calibration" not in predicted.metadata
    if not of_scenario or measured.producer != "measured" or "emulation" in measured.metadata:
        return None
    cluster = predicted.scenario.cluster
    links = f"{rate(cluster.bandwidth_bytes_per_second)} and {show(cluster.latency_seconds, 'second')}"
    return (
        f"The two runs used different networks: the prediction the scenario's links ({links}), the measurement the "
        "machine's own. So the errors tell the difference of the links, too. Cure: distsim measure --emulate, or "
        "distsim simulate --calibration"
    )


def compute_difference(predicted: Trace, measured: Trace) -> list[str]:
    """A sentence where a model computed faster or slower in the run than when it was measured before the prediction.

    The list is empty where the difference is small, no model computes, or the prediction knew too little of its times:
    nothing of cores that workers share, or of a user's own model in pieces, as sharded training computes it.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("synchronous_ring"))
    >>> compute_difference(trace, trace)
    []
    """
    calibrated = predicted.metadata.get("calibration") or {}
    cores = calibrated.get("cores") or {}
    of_model = calibrated.get("model_seconds") or cores.get("step_seconds")
    profile = predicted.scenario.workload.profile
    measurements = {"distsim profile": profile, "distsim calibrate": of_model}
    sources = [command for command, found in measurements.items() if found]
    in_pieces = isinstance(predicted.scenario.policy, Programmed)
    unknown = profile is not None and (in_pieces or (profile.device == "cpu" and not cores))
    if (predicted.producer, measured.producer) != ("simulated", "measured") or not sources or unknown:
        return []
    foreseen, took = (float(worker_seconds(trace)["compute"].mean()) for trace in (predicted, measured))
    if not foreseen or abs(took - foreseen) <= COMPUTE_SHARE * foreseen:
        return []
    return [
        f"a worker computed for {show(took, 'second')}, and {show(foreseen, 'second')} were predicted. Virtual and "
        f"shared cores change their speed within minutes. Cure: {' and '.join(sources)} again, right before the run"
    ]


def verdict(compared: Sequence[Comparison]) -> str:
    """Which of the measured runs was the fastest, by how much, and how well they were predicted; "" of none.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("synchronous_ring"))
    >>> verdict([compare(trace, trace)])
    'synchronous-ring took 3.52 s, and 3.52 s were predicted: an error of +0.0 %, and of 0.0 % in a typical step.'
    """
    if not compared:
        return ""
    if len(compared) == 1:
        (one,) = compared
        took, foreseen = one.measured.total_seconds, one.predicted.total_seconds
        error, of_steps = one.error_pct.total, one.error_pct.step_median
        off = "" if error is None else f": an error of {error:+z.1f} %"
        off += "" if error is None or of_steps is None else f", and of {of_steps:.1f} % in a typical step"
        return f"{one.name} took {_seconds(took)}, and {_seconds(foreseen)} were predicted{off}.{_cancelling(one)}"
    fastest, *_, slowest = sorted(compared, key=lambda one: one.measured.total_seconds)
    least, most = fastest.measured.total_seconds, slowest.measured.total_seconds
    if least == most:
        first = f"{fastest.name} and {slowest.name} took the same time, {_seconds(least)}"
    else:
        among = "faster" if len(compared) == 2 else f"the fastest of {len(compared)}"
        than = f"less than {slowest.name} with {_seconds(most)}"
        first = f"{fastest.name} was {among}: {_seconds(least)}, {100.0 * (1.0 - least / most):.0f} % {than}"
    expected = min(compared, key=lambda one: one.predicted.total_seconds).name
    foreseen = "foresaw that" if expected == fastest.name else f"expected {expected} to be the fastest"
    errors = ", ".join(
        f"{one.name} {one.error_pct.total:+z.1f} %" for one in compared if one.error_pct.total is not None
    )
    return f"{first}. The prediction {foreseen}; the errors of the predicted totals: {errors}."


def _cancelling(one: Comparison) -> str:
    """A sentence where parts of the total's error are much larger than the error, since their signs differ; else ""."""
    causes, took = one.error_pct.causes, one.measured.total_seconds
    large = {part: seconds for part, seconds in causes.items() if abs(seconds) > CANCEL_SHARE * took}
    if len(large) < 2 or max(map(abs, large.values())) < 2.0 * abs(sum(causes.values())):
        return ""
    parts = ", ".join(f"{one.cause_words(part)} {100.0 * each / took:+z.1f} %" for part, each in large.items())
    return f" Larger errors cancel out in the total: {parts}."


def _seconds(seconds: float) -> str:
    """A total, with the same decimals in every run."""
    return f"{seconds:,.2f} s"


def rule_difference(predicted: Trace, measured: Trace) -> list[str]:
    """A sentence where the user's own rule decided one run, and another rule or the policy's own decided the other.

    Two rules are the same where their classes have the same name, and their files too where both traces name one.

    >>> from distsim import example, simulate
    >>> from distsim.policies import Synchronous
    >>> own, usual = (simulate(example("backup_server"), rule=rule) for rule in (Synchronous().rule(5), None))
    >>> rule_difference(own, usual)
    ["the prediction was decided by the rule SynchronousRule, the measurement by the policy's own"]
    """
    rules = [trace.metadata.get("rule") for trace in (predicted, measured)]
    files, classes = zip(*(_file_and_class(rule) for rule in rules), strict=True)
    if classes[0] == classes[1] and (files[0] == files[1] or not all(files)):
        return []
    one, other = (f"the rule {rule}" if rule else "the policy's own" for rule in rules)
    return [f"the prediction was decided by {one}, the measurement by {other}"]


def _file_and_class(rule: object) -> tuple[str, str]:
    """The name of the rule's file, "" where there is none, and of its class."""
    file, _, name = str(rule or "").rpartition(":")
    return Path(file).name, name


def _differences(predicted: Trace, measured: Trace) -> dict[str, tuple[Any, Any]]:
    """The keys in which the scenarios differ, with both values; None for a key that a scenario leaves out."""
    ours, theirs = predicted.scenario.settings(), measured.scenario.settings()
    return {key: (ours.get(key), theirs.get(key)) for key in ours | theirs if ours.get(key) != theirs.get(key)}


def _of_links(key: str) -> bool:
    return key in ("cluster.bandwidth", "cluster.latency") or key.startswith("cluster.nic.")


def _may_differ(key: str) -> bool:
    """Whether a calibration replaces this key, or the times of a run do not depend on it."""
    return _of_links(key) or key in MAY_DIFFER or key.startswith("cost")


def _step_median(predicted: Trace, measured: Trace) -> tuple[float | None, int]:
    ours, theirs = step_durations(predicted).by_key(), step_durations(measured).by_key()
    joined = [key for key in ours if key in theirs and theirs[key] > 0.0]
    errors = [abs(ours[key] - theirs[key]) / theirs[key] for key in joined]
    return (100.0 * float(np.median(errors)) if errors else None), len(ours.keys() ^ theirs.keys())


def _causes(predicted: Trace, measured: Trace) -> dict[str, float]:
    ours, theirs = worker_seconds(predicted), worker_seconds(measured)
    return {part: float(ours[part].mean() - theirs[part].mean()) for part in PARTS}
