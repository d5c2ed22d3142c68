"""A worker's computation in a step before it sleeps the drawn time: almost nothing, or a real forward and backward.

For every policy, `work` fills the gradient and returns the moment from which the drawn time counts.

    begun = computation.work(step, start)
    sleep_until(begun + seconds)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from distsim.runtime.devices.stopwatch import ON_CPU, Stopwatch
from distsim.runtime.ranks.task import task_of
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats, pattern
from distsim.scenario import Scenario

if TYPE_CHECKING:
    from distsim.runtime.devices.device import Device

LARGEST_FACTOR = 1000  # keeps the sums within the whole numbers that float32 holds exactly


class Computation(Protocol):
    """A worker's gradient and parameters: two flat tensors of float32 whose memory never moves."""

    gradient: torch.Tensor
    parameters: torch.Tensor

    def record_in(self, recorder: Recorder) -> None:
        """Records into `recorder` from now on. Before the first call nothing is kept."""
        ...

    def work(self, step: int, start: float) -> float:
        """Computes the gradient of step `step` at the parameters; returns the moment from which the drawn time counts.

        start: when the step began. Both moments are seconds of the monotonic clock.
        """
        ...

    def descend(self, share: float) -> None:
        """Moves the parameters against the gradient, by the learning rate times `share`."""
        ...


class Filling:
    """No model: the gradient is a pattern whose sums are exact. Filling it is part of the drawn time."""

    def __init__(self, worker: int, gradient: torch.Tensor) -> None:
        self._worker = worker
        self._pattern = pattern(gradient.numel()).to(gradient.device)
        self.gradient = gradient
        self.parameters = torch.zeros_like(gradient)

    def record_in(self, recorder: Recorder) -> None:
        """Does nothing: there is nothing to record."""

    def work(self, step: int, start: float) -> float:
        """Fills the gradient."""
        torch.mul(self._pattern, factor(self._worker, step), out=self.gradient)
        return start

    def descend(self, share: float) -> None:
        """A gradient step with a learning rate of 1."""
        self.parameters.sub_(self.gradient, alpha=share)


def factor(worker: int, step: int) -> int:
    """Without a model, a worker's gradient of a step is the pattern times this factor."""
    return worker + 1 + step % LARGEST_FACTOR


class Training:
    """A model: real forward and backward on the gradient's device. The drawn time comes on top."""

    def __init__(
        self, scenario: Scenario, worker: int, gradient: torch.Tensor, stopwatch: Stopwatch = ON_CPU
    ) -> None:  # fmt: skip
        self._stopwatch = stopwatch
        self._task = task_of(scenario, worker, gradient.device)
        self.gradient = gradient
        self.parameters = torch.empty_like(gradient)
        self._adopt()
        self.record_in(Recorder())

    def _adopt(self) -> None:
        """Moves the model's parameters and gradients into the two flat tensors."""
        place = 0
        for parameter in self._task.parameters:
            own = slice(place, place + parameter.numel())
            place = own.stop
            self.parameters[own] = parameter.detach().flatten()
            parameter.data = self.parameters[own].view_as(parameter)
            parameter.grad = self.gradient[own].view_as(parameter)
        assert place == len(self.parameters), "the workload counts the parameters that the model has"

    def record_in(self, recorder: Recorder) -> None:
        """Records forwards, backwards and losses."""
        self._forwards, self._backwards = recorder.table("forwards"), recorder.table("backwards")
        self._losses = recorder.table("losses")

    def work(self, step: int, start: float) -> float:
        """Forward and backward on the step's batch."""
        self.gradient.zero_()
        with self._task.routines():
            loss = self._task.loss(step)
            between = self._stopwatch.moment()
            self._task.backward(loss)
        end = self._stopwatch.wait()
        self._forwards((step, start, between()))
        self._backwards((step, between(), end))
        self._losses((step, loss.item()))
        return end

    def descend(self, share: float) -> None:
        """A gradient step."""
        self.parameters.sub_(self.gradient, alpha=self._task.learning_rate * share)


def computation_of(scenario: Scenario, worker: int, device: Device) -> Computation:
    """The computation of `worker` in this scenario."""
    gradient = torch.zeros(num_floats(scenario.gradient_bytes), device=device.place)
    if scenario.workload.model is None:
        return Filling(worker, gradient)
    return Training(scenario, worker, gradient, device.stopwatch)
