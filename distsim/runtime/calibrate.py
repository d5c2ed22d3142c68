"""Calibrates this machine by real runs: a plan in, the measured machine out. `measure` does all launching."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from distsim.calibration import CalibrationPlan, Imposed, MachineCalibration, fitted
from distsim.calibration.machine import Sample
from distsim.progress import Report
from distsim.runtime.limits import check_available
from distsim.runtime.measure import check_machine, measure_all

SHORTEST_SECONDS = 1e-7  # a clock's tick: shorter times count as this long


def calibrate(plan: CalibrationPlan, *, progress: Report | None = None) -> MachineCalibration:
    """Measures `plan`, with one launch for each number of ranks.

    progress: called with (steps done, steps in all) now and then. Raises RunError where a rank fails. Raises InputError
    before any measurement where torch or the right to emulate links is missing, or the plan cannot be run.
    """
    launches = plan.launches()
    check_machine(None)
    for probe in (probe for probes in launches for probe in probes):
        check_available(probe.scenario)
    total = sum(probe.scenario.steps for probes in launches for probe in probes)
    samples: list[Sample] = []
    latencies: list[float | None] = []
    done = 0
    for probes in launches:
        traces = measure_all(
            [probe.scenario for probe in probes], emulate=plan.emulated, progress=_after(done, total, progress)
        )
        latencies += [trace.metadata["emulation"]["latency_seconds"] for trace in traces if plan.emulated]
        done += sum(probe.scenario.steps for probe in probes)
        for probe, trace in zip(probes, traces, strict=True):
            for operation, model, workers, amount, seconds in probe.samples(trace):
                samples.append((operation, model, workers, amount, np.maximum(seconds, SHORTEST_SECONDS)))
    return fitted(samples, usable_cores(), emulated=plan.emulated, imposed=_imposed(plan, latencies))


def _imposed(plan: CalibrationPlan, latencies: Sequence[float | None]) -> Imposed | None:
    """The imposed links. latencies: those that the launches imposed, None where the kernel could not."""
    if plan.bandwidth is None:
        return None
    return Imposed(
        bandwidth_bytes_per_second=plan.bandwidth, latency_seconds=None if None in latencies else plan.latency
    )


def _after(before: int, total: int, progress: Report | None) -> Report | None:
    """Turns the progress of one launch into the progress of all launches."""
    if progress is None:
        return None
    report = progress
    return lambda done, _of: report(before + done, total)


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
