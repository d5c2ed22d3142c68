"""The whole loop on this machine: calibrate or impose the links, measure, predict, compare."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from distsim.calibration import Calibration, fit, probes
from distsim.calibration.imposed import calibrate_command
from distsim.comparison import (
    Comparison,
    compare,
    compute_difference,
    link_differences,
    network_difference,
    rule_difference,
)
from distsim.errors import InputError
from distsim.progress import Report, bar
from distsim.runtime import other_work
from distsim.runtime.emulation.report import describe, earlier, latency_is_measured, predicted_on
from distsim.runtime.measure import measure, measure_all
from distsim.scenario import Scenario, check_scenario
from distsim.simulation import check_simulated, simulate
from distsim.trace import Trace
from distsim.units import show, write

PROBING = "measuring this machine's links"


@dataclass(frozen=True)
class Experiment:
    """One scenario's two runs and their comparison.

    warnings: sentences on what else than the scenario makes the runs differ. notes: on how the runs were made.
    """

    comparison: Comparison
    predicted: Trace
    measured: Trace
    warnings: list[str]
    notes: list[str]


def predict_and_measure(
    scenario: Scenario,
    calibration: Calibration | None = None,
    *,
    rule: str | None = None,
    deadline_seconds: float | None = None,
    progress: Report | None = None,
) -> Experiment:
    """Runs `scenario` for real and predicts that run. In a terminal or a notebook, a line tells its phases.

    The real run uses this machine's own links, so the prediction does too. A short calibration of the same exchange
    comes first, in the same launch, and replaces the scenario's bandwidth and latency. `calibration` replaces that
    short calibration. The prediction uses nothing of the measured run itself. rule: a rule of your own, for both runs.
    progress: replaces the line, as in `measure`.
    Raises RunError where the real run fails, and InputError where torch is missing.
    """
    check_scenario(scenario)
    check_simulated(scenario)
    before = probes(scenario) if calibration is None else []
    with nullcontext(progress) if progress else bar(scenario.name) as report:
        *probed, measured = measure_all(
            [*before, scenario],
            rules=[None] * len(before) + [rule],
            deadline_seconds=deadline_seconds,
            progress=report,
            called=[*[f"{PROBING}, step"] * len(before), "step"],
        )
    known = Calibration((fit(probed),)) if calibration is None else calibration
    predicted = simulate(scenario, known, rule=rule)
    return _experiment(predicted, measured, [known.describe(scenario)])


def _experiment(predicted: Trace, measured: Trace, notes: list[str]) -> Experiment:
    """A run of this machine beside its prediction."""
    warnings = [*other_work.notes(measured.metadata), *compute_difference(predicted, measured)]
    return Experiment(compare(predicted, measured), predicted, measured, warnings, notes)


def predict_and_emulate(
    scenario: Scenario,
    calibration: Calibration | None = None,
    *,
    rule: str | None = None,
    deadline_seconds: float | None = None,
    progress: Report | None = None,
) -> Experiment:
    """Runs `scenario` for real on an emulated cluster with the scenario's links, and predicts that run.

    The prediction uses the scenario's links. Where the kernel could not impose the latency, the prediction uses the
    time of an empty message in the emulated cluster. The server's own work for an update takes as long as in the
    warm-up before the run. `calibration` must have been made on the same emulated links; it then gives the links, the
    server's work and the model's work. rule: a rule of your own, for both runs. progress: replaces the line, as in
    `measure`.
    Raises RunError where the real run fails, and InputError where torch, or the right to emulate links, is missing, or
    the calibration was made on other links.
    """
    check_scenario(scenario)
    check_simulated(scenario)
    if calibration is not None:
        _check_emulated(calibration, scenario)
    with nullcontext(progress) if progress else bar(scenario.name) as report:
        measured = measure(scenario, emulate=True, rule=rule, deadline_seconds=deadline_seconds, progress=report)
    emulation = measured.metadata["emulation"]
    notes = [describe(emulation)]
    if calibration is not None:
        predicted = simulate(scenario, calibration, rule=rule)
        notes.append(calibration.describe(scenario))
        if calibration.machine is not None and calibration.machine.imposed is None:
            notes.append("the calibration does not name its emulated links: they may differ from the scenario's")
    else:
        predicted = predict_emulated(scenario, measured.metadata, rule=rule)
        if latency_is_measured(emulation):
            notes.append("the prediction uses this measured latency in place of the scenario's")
        if work := _server_seconds(measured.metadata):
            notes.append(f"the server's own work per update takes {show(work, 'second')}, measured in the warm-up")
    return _experiment(predicted, measured, [*notes, *earlier(predicted, emulation)])


def predict_emulated(scenario: Scenario, metadata: dict[str, Any], *, rule: str | None = None) -> Trace:
    """The prediction of a run on emulated links.

    metadata: of the measured trace. From it come two times that the launch measured before the run: the latency, where
    the kernel could not impose one, and the server's own work for an update.
    """
    links = predicted_on(scenario, metadata["emulation"])
    return simulate(links, rule=rule, apply_seconds=_server_seconds(metadata))


def _server_seconds(metadata: dict[str, Any]) -> float:
    return float(metadata.get("warm_up", {}).get("apply_seconds", 0.0))


def _check_emulated(calibration: Calibration, scenario: Scenario) -> None:
    if calibration.machine is None or not calibration.machine.emulated:
        raise InputError(
            "the calibration was made on the machine's own links, and --emulate imposes others. "
            f"Cure: make one with {calibrate_command(scenario.cluster, emulated=True)}, or leave it out"
        )
    if scenario.cluster.nic:
        raise InputError.of(
            "cluster.nic", sorted(scenario.cluster.nic),
            "has no place in a calibration, whose links are all equal", "leave one of the two out",
        )  # fmt: skip
    imposed, cluster = calibration.machine.imposed, scenario.cluster
    if imposed is not None and not imposed.are_those_of(cluster):
        bandwidth = write(cluster.bandwidth_bytes_per_second, "byte/second")
        latency = write(cluster.latency_seconds, "second")
        raise InputError.of(
            "calibration", f"made on {calibration.machine.links}",
            f"says nothing of this scenario's links, {bandwidth} and {latency}",
            f"make one with {calibrate_command(cluster, emulated=True)}, or leave it out",
        )  # fmt: skip


def of_traces(predicted: Trace, measured: Trace, notes: list[str]) -> Experiment:
    """Compares two saved traces; the warnings tell where the prediction used other links or another rule."""
    network = network_difference(predicted, measured)
    differences = [*([network] if network else []), *link_differences(predicted, measured)]
    differences += [*compute_difference(predicted, measured), *rule_difference(predicted, measured)]
    if (predicted.producer, measured.producer) == ("measured", "simulated"):
        differences.append("the predicted trace was measured and the measured one simulated: are they swapped?")
    return Experiment(compare(predicted, measured), predicted, measured, differences, notes)
