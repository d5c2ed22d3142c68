"""Predicted against measured: a paired table, the error in percent of the measurement, and where it comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from distsim.errors import InputError
from distsim.metrics import PARTS, Summary, step_durations, summary, worker_seconds
from distsim.trace import Trace


@dataclass(frozen=True)
class Error:
    """Errors in percent of the measurement; None where one does not apply.

    step_median: the median over joined steps of |predicted - measured| of the step's duration. unmatched: steps that
    only one of the runs has. total: of the time of the last update. staleness: of its mean.
    causes: predicted - measured of compute, communication and waiting in mean worker-seconds, signed; they add up to
    the signed error of the total in seconds.
    """

    step_median: float | None
    total: float | None
    staleness: float | None
    causes: dict[str, float]
    unmatched: int


@dataclass(frozen=True)
class Comparison:
    """One scenario, predicted and measured."""

    name: str
    predicted: Summary
    measured: Summary
    error_pct: Error

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `distsim compare --json` prints them."""
        return asdict(self)


def compare(predicted: Trace, measured: Trace) -> Comparison:
    """Joins two traces of the same scenario step by step. Raises InputError where they are not of one kind.

    >>> from distsim import example, simulate
    >>> trace = simulate(example("synchronous_ring"))
    >>> compare(trace, trace).error_pct.step_median
    0.0
    """
    _check_same_kind(predicted, measured)
    steps, unmatched = _step_median(predicted, measured)
    of_predicted, of_measured = summary(predicted), summary(measured)
    return Comparison(
        name=measured.scenario.name,
        predicted=of_predicted,
        measured=of_measured,
        error_pct=Error(
            step_median=steps,
            total=_percent(of_predicted.total_seconds, of_measured.total_seconds),
            staleness=_percent(of_predicted.mean_staleness, of_measured.mean_staleness),
            causes=_causes(predicted, measured),
            unmatched=unmatched,
        ),
    )


def _check_same_kind(predicted: Trace, measured: Trace) -> None:
    ours, theirs = predicted.scenario, measured.scenario
    for what, one, other in (
        ("policy.kind", ours.policy.kind, theirs.policy.kind),
        ("cluster.workers", ours.cluster.workers, theirs.cluster.workers),
        ("communication.kind", ours.communication.kind, theirs.communication.kind),
    ):
        if one != other:
            raise InputError.of(
                f"{what} of the predicted trace", one, f"must equal the measured one's, {other!r}",
                "compare two traces of one scenario",
            )  # fmt: skip


def _step_median(predicted: Trace, measured: Trace) -> tuple[float | None, int]:
    durations = []
    for trace in (predicted, measured):
        steps = step_durations(trace)
        durations.append(
            dict(
                zip(zip(steps.worker.tolist(), steps.number.tolist(), strict=True), steps.seconds.tolist(), strict=True)
            )
        )
    ours, theirs = durations
    joined = [key for key in ours if key in theirs and theirs[key] > 0.0]
    errors = [abs(ours[key] - theirs[key]) / theirs[key] for key in joined]
    return (100.0 * float(np.median(errors)) if errors else None), len(ours.keys() ^ theirs.keys())


def _percent(predicted: float | None, measured: float | None) -> float | None:
    if predicted is None or not measured:
        return None
    return 100.0 * abs(predicted - measured) / measured


def _causes(predicted: Trace, measured: Trace) -> dict[str, float]:
    ours, theirs = worker_seconds(predicted), worker_seconds(measured)
    return {part: float(ours[part].mean() - theirs[part].mean()) for part in PARTS}
