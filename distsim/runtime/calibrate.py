"""Calibrates this machine by real runs: a plan in, the measured machine out. `measure` does all launching."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from distsim.calibration import CalibrationPlan, Imposed, MachineCalibration, fitted
from distsim.calibration.plan import PASSES
from distsim.calibration.samples import Corrected, Sample
from distsim.progress import Phase, Report
from distsim.runtime.expected_time import expected_seconds
from distsim.runtime.limits import check_available
from distsim.runtime.machine import usable_cores
from distsim.runtime.measure import check_machine, measure_all
from distsim.runtime.other_work import OtherWork

SHORTEST_SECONDS = 1e-7  # a clock's tick: shorter times count as this long


def calibrate(
    plan: CalibrationPlan, *, expected: float | None = None, progress: Report | None = None
) -> MachineCalibration:
    """Measures `plan`, with a launch for each number of ranks in each pass.

    expected: in seconds, what `expected_of(plan)` told, if it was called before.
    progress: called with the `Phase` of the measurement, which counts steps. Raises RunError where a rank fails. Raises
    InputError before any measurement where torch or the right to emulate links is missing, or the plan cannot be run.
    """
    launches = plan.launches()
    check_machine(None)
    for probe in (probe for probes in launches for probe in probes):
        check_available(probe.scenario)
    total = sum(probe.scenario.steps for probes in launches for probe in probes)
    if expected is None:
        expected = expected_of(plan) if progress else 0.0
    samples: list[Sample] = []
    work: list[Sample] = []
    corrections: list[Corrected] = []
    latencies: list[float | None] = []
    taken = 0.0
    done = 0
    for number, probes in enumerate(launches, start=1):
        launch = Phase(f"launch {number} of {len(launches)}", done, total, expected)
        traces = measure_all(
            [probe.scenario for probe in probes], emulate=plan.emulated, progress=_within(launch, progress)
        )
        latencies += [trace.metadata["emulation"]["latency_seconds"] for trace in traces if plan.emulated]
        others = OtherWork(**traces[0].metadata["other_work"])  # of the launch
        taken = max(taken, others.taken if others.disturbs else 0.0)
        done += sum(probe.scenario.steps for probe in probes)
        for probe, trace in zip(probes, traces, strict=True):
            samples += _no_shorter(probe.samples(trace))
            work += _no_shorter(probe.work(trace))
            corrections += probe.corrections(trace)
    return fitted(
        samples, usable_cores(), emulated=plan.emulated, imposed=_imposed(plan, latencies), work=work,
        corrections=corrections, other_work=taken,
    )  # fmt: skip


def _no_shorter(samples: Iterable[Sample]) -> list[Sample]:
    """The same samples with no time below a clock's tick."""
    return [(*sample[:4], np.maximum(sample[4], SHORTEST_SECONDS)) for sample in samples]


def expected_of(plan: CalibrationPlan) -> float:
    """How long the measurement of `plan` should take on this machine, in seconds."""
    return PASSES * sum(
        expected_seconds([probe.scenario for probe in probes], emulate=plan.emulated) for probes in plan.one_pass()
    )


def _imposed(plan: CalibrationPlan, latencies: Sequence[float | None]) -> Imposed | None:
    """The imposed links. latencies: those that the launches imposed, None where the kernel could not."""
    if plan.bandwidth is None:
        return None
    return Imposed(
        bandwidth_bytes_per_second=plan.bandwidth, latency_seconds=None if None in latencies else plan.latency
    )


def _within(whole: Phase, progress: Report | None) -> Report | None:
    """Turns the progress of one launch into the progress of all launches. whole: the phase when this launch begins."""
    if progress is None:
        return None
    report = progress
    return lambda phase: report(replace(whole, doing=f"{whole.doing}: {phase.doing}", done=whole.done + phase.done))
