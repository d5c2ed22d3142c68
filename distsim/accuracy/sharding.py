"""Sharded and tensor parallel training: the time of a step, and the bytes of the busiest link."""

from __future__ import annotations

from typing import Any

from distsim.accuracy.claim import Claim, exactly
from distsim.link_traffic import carried_by_link
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.collectives import all_gather_seconds, reduce_scatter_seconds, ring_all_reduce_seconds
from distsim.theory.sharding import sharded_link_bytes, sharded_step_seconds
from distsim.theory.tensor import tensor_link_bytes, tensor_step_seconds

WORKERS, LAYERS, LAYER_BYTES = 8, 6, 4e6
BYTES_PER_SECOND, LATENCY_SECONDS = 1.25e9, 20e-6
LINK = (BYTES_PER_SECOND, LATENCY_SECONDS)
LAYER_MILLISECONDS = (3.0, 12.0, 60.0)  # of a layer, forward and backward: links decide, both do, computing does
FORWARD, BACKWARD = 1 / 3, 2 / 3


def claims() -> list[Claim]:
    """Stages 1 and 3 with and without gathering ahead, and tensor parallel training; layers from short to long."""
    rows = []
    for milliseconds in LAYER_MILLISECONDS:
        seconds = milliseconds / 1e3
        gather = all_gather_seconds(LAYER_BYTES, WORKERS, *LINK)
        scatter = reduce_scatter_seconds(LAYER_BYTES, WORKERS, *LINK)
        for stage in (1, 3):
            for prefetch in (0, 1):
                found = simulate(_scenario({"kind": "sharded", "stage": stage, "prefetch": prefetch}, milliseconds))
                step = sharded_step_seconds(
                    LAYERS, FORWARD * seconds, BACKWARD * seconds, gather, scatter, stage, prefetch
                )
                case = f"stage {stage}, {prefetch} ahead, {milliseconds:g} ms a layer: seconds"
                rows.append(exactly(case, step, found.total_seconds))
        one = ring_all_reduce_seconds(LAYER_BYTES, WORKERS, *LINK)
        step = tensor_step_seconds(LAYERS * seconds, LAYERS, one)
        found = simulate(_scenario({"kind": "tensor"}, milliseconds))
        rows.append(exactly(f"tensor, {milliseconds:g} ms a block: seconds", step, found.total_seconds))
    for stage in (1, 2, 3):
        carried = sharded_link_bytes(LAYERS * LAYER_BYTES, WORKERS, stage)
        rows.append(exactly(f"stage {stage}: bytes", carried, _bytes({"kind": "sharded", "stage": stage})))
    carried = tensor_link_bytes(LAYER_BYTES, LAYERS, WORKERS)
    rows.append(exactly("tensor: bytes", carried, _bytes({"kind": "tensor"})))
    return rows


def _bytes(policy: dict[str, Any]) -> float:
    """That the busiest link carries in a step."""
    return max(carried_by_link(simulate(_scenario(policy, 12.0))).values())


def _scenario(policy: dict[str, Any], layer_milliseconds: float) -> Scenario:
    return Scenario.of(
        {
            "steps": 1,
            "cluster": {"workers": WORKERS, "bandwidth": "10 Gbit/s", "latency": "20 us"},
            "compute": {"mean": f"{LAYERS * layer_milliseconds} ms"},
            "workload": {"gradient": f"{LAYERS * LAYER_BYTES:.0f} B", "layers": LAYERS, "activation": "4 MB"},
            "policy": policy,
            "communication": {"kind": "ring"},
        }
    )
