"""Whether this machine can run a scenario for real, and the run: predicted, measured, compared, one at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from distsim.calibration import Calibration
from distsim.errors import InputError
from distsim.experiment import Experiment, predict_and_emulate, predict_and_measure
from distsim.progress import Report
from distsim.runtime.emulation import trial
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.limits import check_available
from distsim.runtime.machine import check_memory, crowding
from distsim.runtime.measure import check_machine
from distsim.runtime.roles import roles
from distsim.scenario import Scenario
from distsim.units import show

FASTEST_EMULATED = 125e6  # bytes per second of a NIC: shapers keep to 1 Gbit/s on two cores


def obstacle(scenario: Scenario) -> str | None:
    """Why `scenario` should not be run for real here; None where it should.

    >>> from distsim.examples import example
    >>> obstacle(example("backup_server").replacing({"cluster.workers": 1000}))[:20]
    '1001 processes share'
    """
    try:
        check_machine(None)
        check_available(scenario)
        processes = len(roles(scenario))
        if (crowd := crowding(processes)) is not None:
            return crowd
        check_memory(scenario, processes)
    except InputError as error:
        return str(error)
    return None


def run_for_real(scenario: Scenario, progress: Report, calibration: Calibration | None = None) -> Experiment:
    """Predicts and measures `scenario`: on emulated links, or on the machine's own with a note where it cannot emulate.

    progress: called many times a second; an error in it ends the run and its processes, and removes its files.
    calibration: used for the prediction. The run then uses the kind of links on which the calibration was made.
    Raises InputError while another real run is under way on this machine, and where the calibration was made on
    emulated links and this machine cannot emulate the scenario's links. Also raises what `predict_and_measure` raises.
    """
    with _alone():
        if calibration is not None and not (calibration.machine and calibration.machine.emulated):
            return predict_and_measure(scenario, calibration, progress=progress)
        hindrance = _cannot_emulate(scenario)
        if calibration is not None:
            if hindrance is not None:
                raise InputError(
                    "the calibration was made on emulated links, but this machine cannot emulate the scenario's links: "
                    f"{hindrance}"
                )
            return predict_and_emulate(scenario, calibration, progress=progress)
        if hindrance is None:
            return predict_and_emulate(scenario, progress=progress)
        found = predict_and_measure(scenario, progress=progress)
        note = f"the machine's own links took the place of the scenario's: {hindrance}"
        return replace(found, notes=[*found.notes, note])


def _cannot_emulate(scenario: Scenario) -> str | None:
    try:
        plan = NetworkPlan.of(scenario)
        if plan.fastest_bytes_per_second > FASTEST_EMULATED:
            fastest = show(plan.fastest_bytes_per_second, "byte/second")
            return f"{fastest} is more than {show(FASTEST_EMULATED, 'byte/second')}, up to which links are emulated"
        trial.check(plan)
    except InputError as error:
        return str(error)
    return None


@contextmanager
def _alone() -> Iterator[None]:
    """Two runs at once would disturb each other. This module's own file is locked, so no lock file remains."""
    if sys.platform == "win32":  # no real runs there
        yield
        return
    import fcntl

    descriptor = os.open(__file__, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another real run is under way on this machine, and two would disturb each other. "
                "Cure: wait for its end, or cancel it"
            ) from None
        yield
    finally:
        os.close(descriptor)
