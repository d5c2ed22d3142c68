"""`distsim calibrate` for real: what it predicts of sizes not measured, its file, and what an interrupt leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from distsim.calibration import Calibration, CalibrationPlan, MachineCalibration, exchange_seconds, fitted
from distsim.calibration.operations import OF_MODELS
from distsim.calibration.plan import Probe
from distsim.calibration.samples import Sample
from distsim.examples import example
from distsim.runtime.machine import usable_cores
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.simulation import simulate

pytestmark = [pytest.mark.real, pytest.mark.more]

BAND = 3.0  # loopback is at the mercy of whatever else runs here; a wrong number of bytes or messages goes beyond
TRIES = 2
SIZES = (64 * 2.0**10, 512 * 2.0**10, 4 * 2.0**20)
OTHER_SIZE = "1.5 MiB"


def calibrated_around(
    plan: CalibrationPlan, shows: set[str], targets: list[Scenario]
) -> tuple[MachineCalibration, list[float]]:
    """The machine, and what each target's exchange took between both passes, in a launch of its own number of ranks.

    What else runs on the machine is then much the same for both.
    """
    samples: list[Sample] = []
    measured: dict[str, float] = {}
    for launch in plan.launches():
        probes = [probe for probe in launch if probe.shows in shows]
        if not probes:
            continue
        ranks = (len(probes[0].scenario.servers), probes[0].scenario.cluster.workers)
        own = [
            target
            for target in targets
            if (len(target.servers), target.cluster.workers) == ranks and target.dumps() not in measured
        ]
        probed = [probe.scenario for probe in probes]
        traces = measure_all([*probed, *own])
        for probe, trace in zip(probes, traces[: len(probes)], strict=True):
            samples += probe.samples(trace)
        for target, trace in zip(own, traces[len(probes) :], strict=True):
            measured[target.dumps()] = float(np.median(exchange_seconds(trace)))
    return fitted(samples, usable_cores()), [measured[target.dumps()] for target in targets]


def of_other_size(probe: Probe) -> Scenario:
    return probe.scenario.replacing({"workload.gradient": OTHER_SIZE, "steps": 25})


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_size_that_was_not_measured_is_predicted() -> None:
    """Calibrated at 1 and 2 workers: the exchange of a gradient between the sizes measured."""
    plan = CalibrationPlan(workers=(1, 2), sizes=SIZES, models=(), repeats=40)
    shows = {"all_reduce", "parameter_server", "ring_schedule"}
    probes = {(probe.shows, probe.scenario.cluster.workers): probe for launch in plan.launches() for probe in launch}
    targets = [of_other_size(probes[name, 2]) for name in sorted(shows)]
    ratios: list[list[float]] = []
    for _ in range(TRIES):
        machine, measured = calibrated_around(plan, shows, targets)
        assert {found.amount for found in machine.measured} == set(SIZES)
        predicted = [
            float(np.median(exchange_seconds(simulate(target, Calibration(machine=machine))))) for target in targets
        ]
        ratios.append([ours / theirs for ours, theirs in zip(predicted, measured, strict=True)])
        if all(1 / BAND < ratio < BAND for ratio in ratios[-1]):
            return
    pytest.fail(f"predicted / measured exchanges of {sorted(shows)}: {ratios}, within {BAND} times expected")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "distsim", *map(str, arguments)]


SMALL = ("--workers", "1,2", "--sizes", "16 KiB,1 MiB", "--model", "mlp", "--batch", "8", "--repeats", "6")


@pytest.mark.thorough  # the commands of two pages do the same
@pytest.mark.timeout(300)
def test_the_command_writes_what_simulate_takes(tmp_path: Path) -> None:
    out, page, run = tmp_path / "machine.json", tmp_path / "page.html", tmp_path / "run.toml"
    arguments = command("calibrate", *SMALL, "--busy", "3", "--out", out, "--html", page)
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    for word in ("all-reduce, backend", "all-reduce, ring schedule", "parameter server", "gather", "broadcast",
                 "point to point", "server's own work", "compute, mlp", "latency", "bandwidth", "R²"):  # fmt: skip
        assert word in done.stdout, word
    assert "<html" in page.read_text("utf-8")
    machine = Calibration.load(out).machine
    assert machine is not None
    assert ("ranks shared" in done.stderr) == (machine.cores < 3)
    assert {found.workers for found in machine.measured if found.operation == "compute"} == {1, 2, 3}
    for found in machine.measured:  # of a model's six short runs, one counts
        assert found.repeats >= (1 if found.operation in OF_MODELS else 6), found
    call, *exchanges = machine.work
    assert (call.operation, call.workers) == ("bucket_mean", (1,))
    assert sorted(fit.operation for fit in exchanges) == ["all_reduce", "ring_schedule"]
    for fit in exchanges:  # on a busy machine the bytes may cost too little to be seen beside the fixed part
        assert fit.workers == (2,)
        assert 1e-6 < fit.line.fixed_seconds + 2.0**20 * fit.line.unit_seconds < 0.1, fit
    assert "core time" in done.stdout
    run.write_text(example("synchronous_ring").replacing({"cluster.workers": 3}).dumps())
    done = subprocess.run(command("simulate", run, "--calibration", out, "--json"), capture_output=True, check=True)
    assert json.loads(done.stdout)["updates"] == 50


def came_true(condition: Callable[[], bool], seconds: float) -> bool:
    give_up = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return true


@pytest.mark.timeout(120)
def test_an_interrupt_leaves_no_process_and_no_file(tmp_path: Path, processes_left: Callable[[], int]) -> None:
    files = ("--out", tmp_path / "machine.json", "--html", tmp_path / "page.html")
    process = subprocess.Popen(command("calibrate", *SMALL, *files), start_new_session=True, stderr=subprocess.PIPE)
    assert came_true(lambda: processes_left() > 3, 60.0), "no ranks were started"
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.decode().strip() == "distsim: interrupted"
    assert came_true(lambda: not processes_left(), 5.0), "ranks go on"
    assert not list(tmp_path.iterdir())


def test_a_step_under_ddp_leaves_nothing_where_temporary_files_lie(tmp_path: Path) -> None:
    run, temporary = tmp_path / "run.toml", tmp_path / "temporary"
    temporary.mkdir()
    changes = {"cluster.workers": 1, "steps": 2, "policy": {"kind": "ddp"}, "workload": {"model": "mlp"}}
    run.write_text(example("synchronous_ring").replacing(changes).dumps())
    subprocess.run(command("measure", run), env=os.environ | {"TMPDIR": str(temporary)}, check=True)
    assert not list(temporary.iterdir())
