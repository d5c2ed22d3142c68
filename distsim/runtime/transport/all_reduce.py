"""Sums among peers, by the back end's own all-reduce or by a schedule over point-to-point messages."""

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
        """Makes call number `call` of the run. more: whether another call will follow."""
        ...


class ByBackend:
    """The back end's own all-reduce. Its transfers cannot be seen from outside, so its calls and bytes are counted."""

    def __init__(self, group: backend.Group | None) -> None:
        self._group = group

    def __call__(self, tensor: torch.Tensor, call: int, recorder: Recorder, *, more: bool) -> None:  # noqa: ARG002
        """One all-reduce of the group."""
        backend.all_reduce(tensor, self._group)
        count_reduced(recorder, tensor.nbytes)


def count_reduced(recorder: Recorder, num_bytes: int) -> None:
    """Counts one call of the back end's all-reduce in the rank's own facts."""
    reduced = recorder.facts.setdefault("reduced", {"calls": 0, "bytes": 0})
    reduced["calls"] += 1
    reduced["bytes"] += num_bytes


class BySchedule:
    """The scenario's schedule, over point-to-point messages."""

    def __init__(self, task: ScheduleTask, slot: StatusSlot) -> None:
        self._runner = runner_of(task, slot)

    def __call__(self, tensor: torch.Tensor, call: int, recorder: Recorder, *, more: bool) -> None:
        """One call of the schedule."""
        self._runner.run(tensor, call, recorder, more=more)


def task_of(scenario: Scenario, rank: int, floats: int) -> ScheduleTask:
    """The part of `rank` in this scenario's all-reduces of `floats` numbers."""
    return ScheduleTask(scenario.schedule(), rank, floats, scenario.communication.sends)


def all_reduce_of(
    scenario: Scenario, worker: int, floats: int, slot: StatusSlot, group: backend.Group | None = None
) -> AllReduce:
    """The all-reduce by which `worker` sums `floats` numbers. group: of all workers; None: the default group."""
    return BySchedule(task_of(scenario, worker, floats), slot) if scenario.follows_schedule else ByBackend(group)
