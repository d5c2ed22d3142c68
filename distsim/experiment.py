"""The whole loop on this machine: calibrate, measure, predict, compare."""

from __future__ import annotations

from dataclasses import dataclass

from distsim.calibration import Calibration, fit, probes
from distsim.comparison import Comparison, compare, link_differences
from distsim.progress import bar
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace


@dataclass(frozen=True)
class Experiment:
    """One scenario's two runs and their comparison. notes: what a reader should know of how they were made."""

    comparison: Comparison
    predicted: Trace
    measured: Trace
    notes: list[str]


def predict_and_measure(
    scenario: Scenario,
    calibration: Calibration | None = None,
    *,
    rule: str | None = None,
    deadline_seconds: float | None = None,
) -> Experiment:
    """Runs `scenario` for real and predicts that run, with a progress bar where a person looks.

    The real run uses this machine's own links, so the prediction does too: a short calibration of the very exchange
    goes first, in the same launch, and takes the place of the scenario's bandwidth and latency. With `calibration`
    that one is taken instead. Nothing of the measured run itself enters the prediction. rule: of your own, in both.
    Raises RunError where the real run fails, and InputError where torch is missing.
    """
    before = probes(scenario) if calibration is None else []
    with bar(scenario.name) as progress:
        *probed, measured = measure_all(
            [*before, scenario],
            rules=[None] * len(before) + [rule],
            deadline_seconds=deadline_seconds,
            progress=progress,
        )
    known = Calibration((fit(probed),)) if calibration is None else calibration
    predicted = simulate(scenario, known, rule=rule)
    return Experiment(compare(predicted, measured), predicted, measured, [known.of(scenario).describe()])


def of_traces(predicted: Trace, measured: Trace, notes: list[str]) -> Experiment:
    """Two traces saved elsewhere, compared; a note tells where the prediction took other links."""
    links = link_differences(predicted, measured)
    return Experiment(compare(predicted, measured), predicted, measured, [*notes, *links])
