"""Sums among peers: by the backend's own all-reduce, or by a schedule over point-to-point messages."""

from __future__ import annotations

from typing import Protocol

import torch

from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.runtime.transport.schedule_run import ScheduleTask, runner_of
from distsim.scenario import Scenario


class AllReduce(Protocol):
    """Replaces a tensor by its sum over the workers; all of them call it, in the same order."""

    def __call__(self, tensor: torch.Tensor, call: int, recorder: Recorder, *, more: bool) -> None:
        """Call number `call` of the run. more: whether another will follow."""
        ...


class ByBackend:
    """How its bytes travel cannot be seen from outside; so what is handed to it is counted."""

    def __init__(self, group: backend.Group | None) -> None:
        self._group = group

    def __call__(self, tensor: torch.Tensor, call: int, recorder: Recorder, *, more: bool) -> None:  # noqa: ARG002
        """One all-reduce of the process group."""
        backend.all_reduce(tensor, self._group)
        count_reduced(recorder, tensor.nbytes)


def count_reduced(recorder: Recorder, num_bytes: int) -> None:
    """The rank's own count of what it has handed to the backend's all-reduce."""
    reduced = recorder.facts.setdefault("reduced", {"calls": 0, "bytes": 0})
    reduced["calls"] += 1
    reduced["bytes"] += num_bytes


class BySchedule:
    """The scenario's schedule, by isend and irecv."""

    def __init__(self, task: ScheduleTask, slot: StatusSlot) -> None:
        self._runner = runner_of(task, slot)

    def __call__(self, tensor: torch.Tensor, call: int, recorder: Recorder, *, more: bool) -> None:
        """One call of the schedule."""
        self._runner.run(tensor, call, recorder, more=more)


def follows_schedule(scenario: Scenario) -> bool:
    """Whether workers of this scenario, which sum among themselves, do so by its schedule.

    The backend has no parameter servers, so where there are some the schedule has to say what they do.
    """
    communication = scenario.communication
    return communication.implementation == "schedule" or communication.kind == "parameter_server"


def task_of(scenario: Scenario, rank: int, floats: int) -> ScheduleTask:
    """The part of `rank` in all-reduces of so many numbers in this scenario."""
    return ScheduleTask(scenario.schedule(), rank, floats, scenario.communication.sends)


def all_reduce_of(
    scenario: Scenario, worker: int, floats: int, slot: StatusSlot, group: backend.Group | None = None
) -> AllReduce:
    """How `worker` of this scenario sums so many numbers. group: of all workers (None: the default one)."""
    return BySchedule(task_of(scenario, worker, floats), slot) if follows_schedule(scenario) else ByBackend(group)
