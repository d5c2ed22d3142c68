"""Prediction against real runs of sharded and tensor parallel training: 24 ways, over two kinds of emulated links.

Two models of one's own, and distsim's transformer, at two and four workers. The cores of a virtual machine change their
pace within minutes, so all is measured in turns: new profiles, a new calibration, and one run of each way. The median
of the predictions is judged beside the median of the runs. For a machine that is left alone, so `make test-all` alone
runs it. `python -m tests.test_accuracy_divided` prints the table of the accuracy page.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pytest

from distsim.calibration import Calibration, CalibrationPlan
from distsim.profile import Profile
from distsim.runtime.busy_profile import with_busy_cores
from distsim.runtime.calibrate import calibrate
from distsim.runtime.measure import measure_all
from distsim.runtime.profiling.profile import profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.units import write
from tests.test_accuracy_computing import FILE, step_seconds

OWN = {"own transformer": f"{FILE}:transformer", "tied and frozen": f"{FILE}:tied"}
TRANSFORMER: dict[str, Any] = {"model": "transformer", "batch": 32}
OF_TRANSFORMER: dict[str, dict[str, Any]] = {
    "transformer of 16 blocks, stage 1, each block alone": {"kind": "sharded", "stage": 1},
    "transformer of 16 blocks, stage 1, buckets of 400 kB": {"kind": "sharded", "stage": 1, "bucket": "400 kB"},
    "transformer of 16 blocks, stage 3, buckets of 400 kB": {"kind": "sharded", "stage": 3, "bucket": "400 kB"},
    "transformer of 16 blocks, tensor": {"kind": "tensor"},
}
WORKERS, STEPS, TURNS = (2, 4), 15, 3
LINKS = {"1 Gbit/s": 125e6, "200 Mbit/s": 25e6}  # bytes/s
PERCENT = 10.0

Times = dict[tuple[str, int], list[tuple[float, float]]]  # by way and workers: predicted and measured seconds of a step


def ways(profiles: dict[str, Profile], workers: int, links: str) -> dict[str, Scenario]:
    """The ways to train on these links, by name."""
    asked = {name: (TRANSFORMER, policy) for name, policy in OF_TRANSFORMER.items()}
    for model, found in profiles.items():
        workload = {"model": OWN[model], "profile": found.as_dict()}
        four = {"bucket": write(float(np.ceil(found.gradient_bytes / 4)), "byte")}
        for stage in (1, 3):
            sharded = {"kind": "sharded", "stage": stage}
            asked[f"{model}, stage {stage}, four buckets"] = (workload, sharded | four)
            asked[f"{model}, stage {stage}, each tensor alone"] = (workload, sharded)
    cluster = {"workers": workers, "bandwidth": links, "latency": "0 s"}
    rest = {"steps": STEPS, "cluster": cluster, "communication": {"kind": "ring"}}
    return {
        name: Scenario.of(rest | {"name": name, "workload": workload, "policy": policy})
        for name, (workload, policy) in asked.items()
    }


def turn(links: str, among: Collection[tuple[str, int]] = ()) -> Iterator[tuple[str, int, float, float]]:
    """Each way, its workers, and the predicted and measured seconds of its median step. among: these only, if any."""
    profiles = {name: with_busy_cores(profile(spec), spec) for name, spec in OWN.items()}
    plan = CalibrationPlan(workers=(1, *WORKERS), models=("transformer",), pause=1e-6, bandwidth=LINKS[links])
    known = Calibration(machine=calibrate(plan))
    for workers in WORKERS:
        every = ways(profiles, workers, links)
        asked = {name: one for name, one in every.items() if not among or (name, workers) in among}
        measured = measure_all([*asked.values()], emulate=True) if asked else []
        for (name, scenario), trace in zip(asked.items(), measured, strict=True):
            yield name, workers, step_seconds(simulate(scenario, known)), step_seconds(trace)


def error_pct(times: list[tuple[float, float]]) -> float:
    """The error of the median of the predictions, beside the median of the runs."""
    predicted, measured = np.median(times, axis=0)
    return float(100.0 * (predicted / measured - 1.0))


def turns(links: str, found: Times, among: Collection[tuple[str, int]] = ()) -> None:
    """Adds so many turns to what was found."""
    for _ in range(TURNS):
        for name, workers, predicted, measured in turn(links, among):
            found[name, workers].append((predicted, measured))


@pytest.mark.real
@pytest.mark.iproute2
@pytest.mark.alone
@pytest.mark.thorough
@pytest.mark.timeout(9000)
@pytest.mark.parametrize("links", LINKS)
def test_models_divided_among_workers_are_predicted(links: str) -> None:
    """What is beyond the bound after three turns has three more."""
    found: Times = defaultdict(list)
    turns(links, found)
    if beyond := [way for way, times in found.items() if abs(error_pct(times)) > PERCENT]:
        turns(links, found, beyond)
    told = {way: times for way, times in found.items() if abs(error_pct(times)) > PERCENT}
    assert not told, "\n".join(f"{way}: {error_pct(times):+.1f} % of {times}" for way, times in told.items())


def main(links: str, count: int) -> None:
    """Prints the table of one kind of links as it is measured: the error after all turns, and in the last one."""
    found: Times = defaultdict(list)
    for _ in range(count):
        for name, workers, predicted, measured in turn(links):
            times = found[name, workers]
            times.append((predicted, measured))
            print(
                f"| {name} | {workers} | {links} | {1e3 * predicted:.1f} ms | {1e3 * measured:.1f} ms | "
                f"{error_pct(times[-1:]):+.1f} % | {error_pct(times):+.1f} % |", flush=True,
            )  # fmt: skip
    beyond = {way: round(error_pct(times), 1) for way, times in found.items() if abs(error_pct(times)) > PERCENT}
    print(f"{len(found) - len(beyond)} of {len(found)} within {PERCENT:g} %: beyond {beyond}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
