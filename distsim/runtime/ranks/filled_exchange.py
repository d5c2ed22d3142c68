"""Exchanges of made-up numbers, each of which tells who wrote it and in which step, so that wrong results show."""

from __future__ import annotations

import time

import torch

from distsim.groups import GroupExchange
from distsim.runtime.ranks.computation import factor
from distsim.runtime.ranks.peers import WrongSumError
from distsim.runtime.ranks.program import own_part
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats, pattern
from distsim.runtime.transport.schedule_run import ScheduleTask, runner_of
from distsim.scenario import Scenario


class FilledVector:
    """What an exchange of `num_bytes` carries, on one worker. unit: what it is about, as an error tells it."""

    def __init__(self, scenario: Scenario, worker: int, exchange: GroupExchange, num_bytes: float, unit: str) -> None:
        self._worker, self._kind, self._unit = worker, exchange.kind, unit
        self._members = exchange.groups.members(worker) if exchange.groups else range(scenario.cluster.workers)
        self.numbers = torch.zeros(num_floats(num_bytes))
        self._pattern = pattern(len(self.numbers))
        self._own = own_part(scenario.schedule(exchange), worker, len(self.numbers))

    def make(self, step: int) -> None:
        """Writes the numbers that this worker brings to the exchange of a step."""
        if self._kind == "all_gather":
            torch.mul(self._pattern[self._own], step + 1, out=self.numbers[self._own])
        else:
            torch.mul(self._pattern, factor(self._worker, step), out=self.numbers)

    def check(self, step: int) -> None:
        """Raises WrongSumError where the exchange of this step did not leave what it should."""
        scale, where = step + 1, slice(None)
        if self._kind != "all_gather":
            scale, where = sum(factor(member, step) for member in self._members), self._own
        wrong = int((self.numbers[where] != self._pattern[where] * scale).sum())
        if wrong:
            raise WrongSumError(
                f"{wrong} of {self.numbers[where].numel()} numbers of the last {self._kind} of {self._unit} are wrong "
                f"at worker {self._worker}"
            )


class FilledExchange:
    """An exchange of made-up numbers between one worker and its group, any number of times."""

    def __init__(
        self, scenario: Scenario, worker: int, slot: StatusSlot, exchange: GroupExchange, num_bytes: float, unit: str
    ) -> None:
        self._vector = FilledVector(scenario, worker, exchange, num_bytes, unit)
        floats, sends = len(self._vector.numbers), scenario.communication.sends
        self._runner = runner_of(ScheduleTask(scenario.schedule(exchange), worker, floats, sends), slot)

    def make(self, step: int) -> None:
        """Writes the numbers that the worker brings in this step."""
        self._vector.make(step)

    def run(self, call: int, recorder: Recorder) -> None:
        """Joins call number `call` of the run."""
        arrival = time.monotonic()
        self._runner.run(self._vector.numbers, call, recorder, more=False)
        recorder.table("all_reduces")((call, arrival, time.monotonic()))

    def check(self, step: int) -> None:
        """Raises WrongSumError where the last exchange of this step left wrong numbers."""
        self._vector.check(step)
