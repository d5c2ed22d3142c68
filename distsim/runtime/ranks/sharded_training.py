"""A model that workers train sharded: each keeps a part of the training's state, see `policies.sharded`."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain

import torch

from distsim.groups import GroupExchange
from distsim.policies import Sharded
from distsim.runtime.profiling.held_memory import frozen_bytes
from distsim.runtime.profiling.parameter_uses import ModuleEvents, watched
from distsim.runtime.ranks.peers import check_equal
from distsim.runtime.ranks.program import StepQueues, own_part
from distsim.runtime.ranks.sharded_unit import Unit
from distsim.runtime.ranks.task import task_of
from distsim.runtime.recording.recorder import Recorder
from distsim.scenario import Scenario

CPU = torch.device("cpu")


class ShardedTraining:
    """The work of one worker, see `StepWork`."""

    def __init__(self, scenario: Scenario, worker: int) -> None:
        assert isinstance(scenario.policy, Sharded)
        policy, workers = scenario.policy, scenario.cluster.workers
        self._program = policy.program(scenario.workload, workers)
        self._task, self._workers = task_of(scenario, worker, CPU), workers
        schedule = scenario.schedule(GroupExchange("all_gather"))
        self._units = [
            Unit([*chain.from_iterable(self._task.layers[layer] for layer in unit)], policy.stage,
                 lambda floats: own_part(schedule, worker, floats))
            for unit in policy.units(scenario.workload.layer_bytes)
        ]  # fmt: skip
        for number, unit in enumerate(self._units):
            for one in unit.layers:
                # torch has no types for both
                one.register_hook(lambda _, unit=unit: self._before_gradient(unit))  # type: ignore[no-untyped-call]
                one.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    lambda _, number=number: self._has_gradient(number)
                )
        self._frozen_bytes = frozen_bytes(self._task.model)
        self._events = ModuleEvents(self._task.model, self._event)
        self._queues: StepQueues | None = None  # of the step under way; None where the step only shows its uses
        self._reached: tuple[int, ...] = ()
        self._frees: dict[int, list[Unit]] = {}  # by computation, at whose end
        self._waits: dict[int, list[int]] = {}  # by computation: exchanges that it needs before its own turn
        self._record = Recorder().table("losses")
        self.peaks = {"parameters": 0, "gradients": 0}

    def prepare(self) -> None:
        """Computes one step while all parameters are there, to see when it uses which."""
        self._begin_gradients()
        with self._task.routines():
            uses = watched(
                [unit.parameters.whole for unit in self._units], self._events, lambda: self._turn,
                lambda: self._task.loss(0), self._task.backward,
            )  # fmt: skip
        self._reached = uses.reached
        again = {
            exchange.unit: number
            for number, exchange in enumerate(self._program.exchanges)
            if exchange.kind == "all_gather" and number >= len(self._units)
        }
        for number, unit in enumerate(self._units):
            first, last = uses.backward[number] or (number, number)
            stays = number in again and self._program.exchanges[again[number]].after > self._backward(first)
            if not stays:
                self._frees.setdefault(1 + uses.forward[number], []).append(unit)
            if first > number and number in again and not stays:
                self._waits.setdefault(self._backward(first), []).append(again[number])
            self._frees.setdefault(self._backward(min(last, number)), []).append(unit)
            unit.parameters.collect()
            unit.parameters.free()
            unit.gradients.free()
        self._saved = [unit.parameters.part.clone() for unit in self._units]

    def record_in(self, recorder: Recorder) -> None:
        """Takes back what the warm-up has learned."""
        for unit, saved in zip(self._units, self._saved, strict=True):
            unit.parameters.part.copy_(saved)
        del self._saved
        self._record = recorder.table("losses")
        recorder.facts["held_bytes"] = self.peaks = dict.fromkeys(self.peaks, 0)

    def compute(self, step: int, queues: StepQueues) -> None:
        """Updates the worker's part by the gradients of the step before; then forward and backward."""
        self._queues, self._number = queues, 0
        queues.begin(0)
        if step:
            for unit in self._units:
                unit.parameters.part.sub_(unit.gradients.part, alpha=self._task.learning_rate / self._workers)
        self._begin_gradients()
        self._events.restart()
        self._go_on_to(1)
        with self._task.routines():
            loss = self._task.loss(step)
            self._go_on_to(self._backward(len(self._units) - 1))
            self._task.backward(loss)
        self._record((step, loss.item()))

    def numbers(self, exchange: int) -> torch.Tensor:
        """A unit's parameters, to be gathered, or its gradients, to be summed."""
        piece = self._program.exchanges[exchange]
        if piece.kind == "reduce_scatter":
            return self._units[piece.unit].gradients.whole
        parameters = self._units[piece.unit].parameters
        parameters.spread()
        self._note("parameters", self._frozen_bytes + sum(unit.parameters.held_bytes for unit in self._units))
        return parameters.whole

    def exchanged(self, exchange: int) -> None:
        """Keeps the worker's part of the sum."""
        piece = self._program.exchanges[exchange]
        if piece.kind == "reduce_scatter":
            self._units[piece.unit].gradients.collect()
            self._units[piece.unit].gradients.free()

    def verify(self, repeat: Callable[[int], None]) -> None:
        """Raises WrongSumError where two workers' gathered parameters differ."""
        self.peaks = dict(self.peaks)  # those of the run stand in the record
        for number in range(len(self._units)):
            repeat(number)
        check_equal(torch.cat([unit.parameters.whole for unit in self._units]), self._workers)

    def _backward(self, unit: int) -> int:
        """The number of a unit's backward among the step's computations."""
        return 2 * len(self._units) - unit

    def _event(self, event: int) -> None:
        """In forward: the next operations need the units up to this one."""
        if self._queues is not None:
            self._go_on_to(1 + self._reached[event])

    def _go_on_to(self, number: int) -> None:
        """Ends the computations before this one, and begins it."""
        while self._number < number:
            self._end()
            self._number += 1
            assert self._queues is not None
            self._queues.begin(self._number)
            for exchange in self._waits.get(self._number, ()):
                self._queues.wait(exchange)

    def _end(self) -> None:
        assert self._queues is not None
        now = time.monotonic()
        for unit in self._frees.get(self._number, ()):
            unit.parameters.free()
        self._queues.end(self._number, drawn_from=now)  # which comes on top

    def _begin_gradients(self) -> None:
        self._turn = len(self._units) - 1  # the unit whose gradients come next
        self._missing = [len(unit.layers) for unit in self._units]
        for unit in self._units:
            if unit.gradients.is_whole:
                unit.gradients.whole.zero_()

    def _before_gradient(self, unit: Unit) -> None:
        if not unit.gradients.is_whole:
            unit.gradients.grow()
            unit.gradients.whole.zero_()
        self._note("gradients", sum(unit.gradients.held_bytes for unit in self._units))

    def _has_gradient(self, number: int) -> None:
        self._missing[number] -= 1
        while self._turn >= 0 and not self._missing[self._turn]:
            self._turn -= 1
            if self._queues is None:
                continue
            if self._turn >= 0:
                self._go_on_to(self._backward(self._turn))
            else:
                self._end()

    def _note(self, kind: str, held_bytes: int) -> None:
        self.peaks[kind] = max(self.peaks[kind], held_bytes)
