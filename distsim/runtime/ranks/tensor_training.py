"""A transformer whose blocks workers share: all workers together, or each group of a mesh, with a batch of its own.

A worker computes half a block at a time. The sum over the workers that share the block ends the half, in the middle of
torch's forward or backward. On a mesh, a block's backward ends with the norm before attention, whose gradients come
after the last sum. Then all gradients of the block are there, and the workers that have the same part of it exchange
them; they may divide the state of their part, as in sharded training.
Sources: those of `policies.tensor` and `policies.mesh`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

from distsim.learning.batches import Batches
from distsim.policies import Mesh, Tensor
from distsim.runtime.ranks.block_part import BlockPart
from distsim.runtime.ranks.peers import check_equal
from distsim.runtime.ranks.program import StepQueues, own_part
from distsim.runtime.ranks.sharded_unit import Unit
from distsim.runtime.ranks.task import LEARNING_RATE, flat, problem_on
from distsim.runtime.recording.recorder import Recorder
from distsim.scenario import Scenario

CPU = torch.device("cpu")


class TensorTraining:
    """The work of one worker, see `StepWork`. Without a mesh, all workers are one group."""

    def __init__(self, scenario: Scenario, worker: int) -> None:
        policy, workload, self._workers = scenario.policy, scenario.workload, scenario.cluster.workers
        assert isinstance(policy, Tensor | Mesh)
        self._program = policy.program(workload, self._workers)
        mesh = policy if isinstance(policy, Mesh) else Mesh(data=1, tensor=self._workers)
        sharing = mesh.sharing if policy is mesh else None
        sums = [number for number, one in enumerate(self._program.exchanges) if one.groups == sharing]
        self._sums = {self._program.exchanges[number].after - 1: number for number in sums}  # by the computation before
        self._data, self._tensor = mesh.data, mesh.tensor
        self._group, place = divmod(worker, mesh.tensor)
        self._problem = problem_on(CPU, scenario)
        self._batches = Batches(len(self._problem.training), mesh.data, workload.batch, scenario.seed)
        blocks = [block for block in self._problem.model if isinstance(block, nn.TransformerEncoderLayer)]
        self._parts = [BlockPart(block, place, mesh.tensor, self._total) for block in blocks]
        self._model = nn.Sequential(*self._parts)

        def own(floats: int) -> slice:
            gathers = (one.called for one in self._program.exchanges if one.kind == "all_gather")
            return next((own_part(scenario.schedule(one), worker, floats) for one in gathers), slice(None))

        self._units = [Unit([*part.parameters()], mesh.stage, own) for part in self._parts]
        if policy is mesh:
            for number, unit in enumerate(self._units):
                for one in unit.layers:
                    one.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call] # torch
                        lambda _, number=number: self._has_gradient(number)
                    )
        self._record = Recorder().table("losses")
        self.peaks = {"parameters": 0, "gradients": 0}

    def prepare(self) -> None:
        """Keeps the parameters, which the warm-up changes."""
        for unit in self._units:
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
        self._missing = [len(unit.layers) for unit in self._units]
        self._note_parameters()
        queues.begin(0)
        if step:
            for unit in self._units:
                unit.parameters.part.sub_(unit.gradients.part, alpha=LEARNING_RATE / self._data)
        if self._program.computations[0].kind == "apply":
            self._go_on()
        samples = torch.from_numpy(self._batches.of(self._group, step))
        loss = self._problem.loss(self._model(self._problem.training.inputs[samples]),
                                  self._problem.training.targets[samples])  # fmt: skip
        loss.backward()  # type: ignore[no-untyped-call] # torch
        self._record((step, loss.item()))

    def _go_on(self) -> None:
        """Ends the computation under way, and begins the next one."""
        now, pieces = time.monotonic(), self._program.computations
        ended, following = pieces[self._number], pieces[self._number + 1 :][:1]
        in_the_middle = [(ended.kind, ended.unit)] == [(one.kind, one.unit) for one in following]
        if ended.kind != "apply" and not in_the_middle:
            self._units[ended.unit].parameters.free()
        self._queues.end(self._number, drawn_from=now)  # which comes on top
        self._number += 1
        for one in following:
            self._queues.begin(self._number)
            if one.kind == "backward" and not in_the_middle:
                self._begin_gradients(self._units[one.unit])

    def _begin_gradients(self, unit: Unit) -> None:
        unit.gradients.grow()
        unit.gradients.whole.zero_()
        held = sum(one.gradients.held_bytes for one in self._units)
        self.peaks["gradients"] = max(self.peaks["gradients"], held)

    def _has_gradient(self, number: int) -> None:
        self._missing[number] -= 1
        if not self._missing[number]:
            self._go_on()

    def _note_parameters(self) -> None:
        held = sum(one.parameters.held_bytes for one in self._units)
        self.peaks["parameters"] = max(self.peaks["parameters"], held)

    def _total(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over the workers that share the blocks: exchanged between the computation under way and the next."""
        total, exchange = values.clone(memory_format=torch.contiguous_format), self._sums[self._number]
        self._summed = total.view(-1)
        self._go_on()
        self._queues.wait(exchange)
        return total

    def numbers(self, exchange: int) -> torch.Tensor:
        """Activations or their gradients, a block's parameters to be gathered, or its gradients to be summed."""
        piece = self._program.exchanges[exchange]
        if exchange in self._sums.values():
            return self._summed
        unit = self._units[piece.unit]
        if piece.kind != "all_gather":
            return unit.gradients.whole
        unit.parameters.spread()
        self._note_parameters()
        return unit.parameters.whole

    def exchanged(self, exchange: int) -> None:
        """Keeps the worker's part of summed gradients. The computing thread takes summed activations."""
        piece = self._program.exchanges[exchange]
        if piece.kind == "reduce_scatter":
            self._units[piece.unit].gradients.collect()
            self._units[piece.unit].gradients.free()

    def verify(self, repeat: Callable[[int], None]) -> None:
        """Raises WrongSumError where two workers differ in what both have, gathered where it is divided."""
        self.peaks = dict(self.peaks)  # those of the run stand in the record
        first = {one.unit: number for number, one in reversed([*enumerate(self._program.exchanges)])
                 if one.kind == "all_gather"}  # fmt: skip
        for number in sorted(first.values()):
            repeat(number)
        check_equal(flat(one for part in self._parts for one in part.whole_parameters()), self._workers)
        check_equal(flat(self._model.parameters()), self._workers, apart=self._tensor)
