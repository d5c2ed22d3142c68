"""Sharded training against a count of what each worker keeps, and against the schedules of its collectives."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.collectives import COLLECTIVES
from distsim.collectives.table import Topology
from distsim.errors import InputError
from distsim.theory.sharding import STAGES, sharded_link_bytes, sharded_state_bytes

SENT = {0: ["ring"], 1: ["reduce_scatter", "all_gather"], 2: ["reduce_scatter", "all_gather"],
        3: ["all_gather", "all_gather", "reduce_scatter"]}  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_a_worker_holds_its_part_of_what_is_divided_and_all_of_the_rest(stage: int, workers: int) -> None:
    parameters = 240
    own = range(parameters // workers)  # the numbers of the parameters that the first worker keeps
    held = 0.0
    for kind, each in enumerate((12.0, 2.0, 2.0), start=1):
        held += each * len(own if stage >= kind else range(parameters))
    assert sharded_state_bytes(parameters, workers, stage) == pytest.approx(held, rel=1e-12)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("workers", [1, 2, 5, 16])
def test_a_link_carries_what_the_schedules_send(stage: int, workers: int) -> None:
    schedules = [COLLECTIVES[kind].schedule(Topology(workers)) for kind in SENT[stage]]
    for way in (0, 1):
        carried = sum(schedule.bytes_per_link(1e6)[way] for schedule in schedules)
        assert carried == pytest.approx(np.full(workers, sharded_link_bytes(1e6, workers, stage)), rel=1e-12)


@pytest.mark.parametrize("stage", [-1, 4, 1.5, 2.0, True])
def test_another_stage_is_refused(stage: int) -> None:
    for call in (sharded_state_bytes, sharded_link_bytes):
        with pytest.raises(InputError, match=r"stage = .* is no stage of sharded training.*take 0, 1, 2 or 3"):
            call(1e6, 4, stage)
