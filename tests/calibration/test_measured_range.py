"""What lies far beyond a calibration is told; what lies within, or little beyond, is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distsim.calibration import Calibration, Exchange, cautions, far_beyond, fitted
from distsim.calibration.measured_range import lacking
from distsim.calibration.operations import Operation
from distsim.calibration.samples import Sample
from distsim.examples import example
from distsim.scenario import Scenario

RING = example("synchronous_ring")


def at(operation: Operation, workers: int, amounts: tuple[float, ...] = (1e4, 1e6), model: Any = None) -> list[Sample]:
    return [(operation, model, workers, amount, np.full(3, 1e-4 + amount / 1e9)) for amount in amounts]


MACHINE = Calibration(
    machine=fitted(
        [
            *at("all_reduce", 2), *at("all_reduce", 4), *at("point_to_point", 2), *at("apply", 4),
            *at("parameter_server", 4), *at("compute", 2, (8.0, 32.0), "mlp"),
        ],
        cores=8,
    )
)  # fmt: skip
PIPELINE = {"policy": {"kind": "pipeline", "micro_batches": 4}, "workload.activation": "4 MB"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workload.gradient": "1 MB"}, []),
        ({"workload.gradient": "10 B"}, []),
        ({"workload.gradient": "4 MB", "cluster.workers": 8}, []),
        ({"workload.gradient": "4.1 MB"}, ["all-reduce, backend: 4.1 MB on 4 workers are far beyond the 1 MB on 4 "]),
        ({"workload.gradient": "1 MB", "cluster.workers": 9}, ["1 MB on 9 workers are far beyond the 1 MB on 4 that"]),
        ({"communication.kind": "parameter_server", "workload.gradient": "1 GB"}, ["parameter server: 1 GB on 4 work"]),
        ({"policy": {"kind": "ddp", "bucket": "1 MB"}, "workload.gradient": "1 GB"}, []),
        (
            {"policy": {"kind": "ddp", "bucket": "8 MB"}, "workload.gradient": "1 GB"},
            ["8 MB on 4 workers are far beyo"],
        ),
        (PIPELINE, []),
        (PIPELINE | {"cluster.workers": 16}, []),
        (PIPELINE | {"workload.activation": "17 MB"}, ["point to point: 4.25 MB on 4 workers"]),
        ({"workload": {"model": "mlp", "batch": 128}}, []),
        (
            {"workload": {"model": "mlp", "batch": 129}},
            ["compute, mlp: a batch of 129 on 4 workers is far beyond one of 32 on"],
        ),
        (
            {"workload": {"model": "mlp"}, "cluster.workers": 6},
            ["compute, mlp: a batch of 1 on 6 workers is far beyond "],
        ),
    ],
)
def test_what_is_far_beyond_is_told(changes: dict[str, Any], told: list[str]) -> None:
    found = far_beyond(MACHINE, RING.replacing(changes))
    assert len(found) == len(told)
    for sentence, part in zip(found, told, strict=True):
        assert part in sentence


@pytest.mark.parametrize(
    ("changes", "cure"),
    [
        ({"workload.gradient": "5 MB"}, "larger --sizes"),
        ({"workload.gradient": "1 MB", "cluster.workers": 9}, "more --workers"),
        ({"workload.gradient": "5 MB", "cluster.workers": 9}, "larger --sizes and more --workers"),
        ({"workload": {"model": "mlp", "batch": 129}}, "a larger --batch"),
        ({"workload": {"model": "mlp", "batch": 129}, "cluster.workers": 5}, "a larger --batch and more --workers"),
    ],
)
def test_the_cure_is_to_measure_more_of_what_is_far_beyond(changes: dict[str, Any], cure: str) -> None:
    told = far_beyond(MACHINE, RING.replacing(changes))[-1]
    assert told.endswith(f"that was measured; the prediction is a guess. Cure: calibrate with {cure}")


def test_an_exchange_reaches_as_far_as_it_was_measured() -> None:
    points = ((2.5e5, 1e-3), (1e6, 3e-3))
    known = Calibration((Exchange("ring", 4, 1e9, 1e-4, 0.0, points),), MACHINE.machine)
    assert far_beyond(known, RING.replacing({"workload.gradient": "4 MB"})) == []
    (told,) = far_beyond(known, RING.replacing({"workload.gradient": "5 MB"}))
    assert told.startswith("ring: 5 MB on 4 workers are far beyond the 1 MB on 4 ")
    unknown = Calibration((Exchange("ring", 4, 1e9, 1e-4, 0.0, ()),))
    assert far_beyond(unknown, RING.replacing({"workload.gradient": "5 GB"})) == []


def test_a_prediction_tells_what_its_calibration_lacks() -> None:
    """From the worst to none."""
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    alone = [("compute", "mlp", 1, batch, np.full(3, 1e-4 * batch)) for batch in (8.0, 32.0)]
    together = [("compute", "mlp", 2, batch, np.full(3, 1.2e-4 * batch)) for batch in (8.0, 32.0)]
    asked = Scenario.of(RING.table() | {"workload": {"model": "mlp", "batch": 32}})
    assert lacking(None, RING) == []
    (told,) = lacking(None, asked)
    assert "no time for the forward and backward of mlp: run distsim calibrate --model mlp" in told
    (told,) = lacking(Calibration(machine=fitted([*rings, *alone, *together], cores=2)), asked)
    assert "does not know how exchanges and the computing of mlp compete for cores" in told
    (told,) = lacking(Calibration(machine=fitted([*rings, *alone], cores=2, work=rings)), asked)
    assert told.endswith("Run distsim calibrate --workers 1,2 --out machine.json")
    (told,) = lacking(Calibration(machine=fitted([*rings, *alone], cores=2, work=rings)), asked, emulated=True)
    links = "--emulate --bandwidth '10 Gbit/s' --latency '50 us'"
    assert told.endswith(f"Run distsim calibrate --workers 1,2 {links} --out machine.json")
    shaped = fitted([*rings, *alone], cores=2, work=rings, emulated=True)
    assert lacking(Calibration(machine=shaped), asked) == [told], "its links were emulated, so the next one's are"
    assert lacking(Calibration(machine=fitted([*rings, *alone, *together], cores=2, work=rings)), asked) == []


@pytest.mark.parametrize(("taken", "told"), [(0.0, False), (0.9, True)])
def test_a_calibration_of_a_busy_machine_is_not_to_be_trusted(taken: float, told: bool) -> None:
    machine = fitted(at("all_reduce", 4), cores=2, other_work=taken)
    busy = "other programs took 0.9 of 2 cores while this machine was calibrated"
    for sentences in (machine.warnings(), cautions(Calibration(machine=machine), RING)):
        assert [sentence.startswith(busy) for sentence in sentences if "other programs" in sentence] == [True] * told
