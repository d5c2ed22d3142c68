"""The device of a rank: a GPU of its own, with sums by NCCL, or the CPU, with sums by gloo.

Ranks work on GPUs if the workers use the back end's own all-reduce, and every machine of the run has NCCL and a GPU for
each of its ranks. Otherwise all ranks work on CPUs, since ranks that share a GPU would wait for each other. Barriers,
the agreement on a start and ping-pong always go by gloo.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch

from distsim.runtime.devices.stopwatch import ON_CPU, CudaStopwatch, Stopwatch
from distsim.runtime.transport import backend
from distsim.runtime.transport.backend import Group
from distsim.scenario import Scenario


@dataclass(frozen=True)
class Device:
    """The device of a rank. place: of its tensors; group: which sums them, None for the group of all ranks.

    stopwatch: times the work done there. names: the devices of all ranks. reason: why the rank works here.
    """

    place: torch.device
    backend: str
    group: Group | None
    stopwatch: Stopwatch
    names: tuple[str, ...]
    reason: str

    def facts(self) -> dict[str, Any]:
        """The facts about the device for a trace, in values that JSON can hold."""
        return {"backend": self.backend, "devices": list(self.names), "devices_because": self.reason}


@dataclass(frozen=True)
class GpuSupport:
    """The GPUs of one machine. gpus: how many torch can use; nccl: whether torch has NCCL; ranks: how many run here."""

    gpus: int
    nccl: bool
    ranks: int

    @classmethod
    def own(cls) -> GpuSupport:
        """This machine, from torchrun's environment and torch."""
        return cls(torch.cuda.device_count(), backend.has_nccl(), int(os.environ["LOCAL_WORLD_SIZE"]))

    def lack(self) -> str | None:
        """Why the machine's ranks cannot have GPUs; None where they can.

        >>> GpuSupport(gpus=2, nccl=True, ranks=4).lack()
        'a machine has 4 ranks and 2 GPUs'
        """
        if not self.gpus:
            return "a machine has no GPU that torch can use"
        if not self.nccl:
            return "a machine's torch has no NCCL"
        if self.gpus < self.ranks:
            return f"a machine has {self.ranks} ranks and {self.gpus} GPU{'s' if self.gpus > 1 else ''}"
        return None


def obstacle(scenario: Scenario, *, emulated: bool) -> str | None:
    """Why ranks of `scenario` cannot work on GPUs, whatever the machines have; None where they can.

    emulated: whether the scenario's links are emulated.
    """
    for keeps, why in (
        (emulated, "NCCL goes around emulated links"),
        (scenario.failures is not None, "NCCL is not brought back after a failure"),
        (scenario.server_decides, "servers receive from any worker, which NCCL cannot"),
        (not scenario.policy.all_reduces, "pipelines send by gloo"),
        (scenario.follows_schedule, "schedules send by gloo"),
    ):
        if keeps:
            return why
    return None


def on_cpu(reason: str, ranks: int = 1) -> Device:
    """The CPU, in a run of `ranks` ranks."""
    return Device(torch.device("cpu"), "gloo", None, ON_CPU, ("cpu",) * ranks, reason)


def on_gpu(names: Sequence[str], patience: timedelta) -> Device:
    """The GPU with this rank's number on its machine. All ranks call it. names: the GPUs of all ranks."""
    place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(place)
    torch.backends.cudnn.allow_tf32 = False  # a model learns in float32, as on a CPU
    group = backend.group_by_nccl(patience)
    return Device(place, "nccl", group, CudaStopwatch(), tuple(names), "every rank has a GPU of its own")


def devices(scenarios: Sequence[Scenario], *, emulated: bool, patience: timedelta) -> list[Device]:
    """The device for each scenario of a launch. All ranks call it with the same arguments and get the same kind.

    patience: how long a sum by NCCL may wait.
    """
    ranks, chosen = backend.num_ranks(), []
    unhindered: Device | None = None  # chosen once, at the first scenario that may use GPUs
    for scenario in scenarios:
        why = obstacle(scenario, emulated=emulated)
        if why is not None:
            chosen.append(on_cpu(why, ranks))
        else:
            unhindered = unhindered or free(patience)
            chosen.append(unhindered)
    return chosen


def free(patience: timedelta) -> Device:
    """The device of a scenario without an obstacle: a GPU if no machine lacks anything. All ranks call it."""
    own = GpuSupport.own().lack()
    name = torch.cuda.get_device_name(int(os.environ["LOCAL_RANK"])) if own is None else "cpu"
    told = backend.all_gather((own, name))
    lack = next((lack for lack, _ in told if lack is not None), None)
    return on_gpu([name for _, name in told], patience) if lack is None else on_cpu(lack, len(told))
