"""What a worker computes in one step, before the drawn time is slept: next to nothing, or a real forward and backward.

The same for every policy: `work` fills the gradient, and tells from when on the drawn time counts.

    begun = computation.work(step, start)
    sleep_until(begun + seconds)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import torch

from distsim.learning.batches import Batches
from distsim.learning.kernels import plain_convolutions
from distsim.learning.problems import Data, Problem, problem
from distsim.runtime.devices.stopwatch import ON_CPU, Stopwatch
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats, pattern
from distsim.scenario import Scenario

if TYPE_CHECKING:
    from distsim.runtime.devices.device import Device

LEARNING_RATE = 0.05  # every model here learns with it, and none diverges
LARGEST_FACTOR = 1000  # keeps the sums within the whole numbers that float32 holds exactly


class Computation(Protocol):
    """A worker's gradient and parameters, each one flat tensor of float32 that stays where it is."""

    gradient: torch.Tensor
    parameters: torch.Tensor

    def record_in(self, recorder: Recorder) -> None:
        """Where it writes down from now on what it did and when; until then nowhere."""
        ...

    def work(self, step: int, start: float) -> float:
        """Computes the gradient of step `step` at the parameters; returns when the drawn time begins to count.

        start: when the step began. Both in seconds of the monotonic clock.
        """
        ...

    def descend(self, share: float) -> None:
        """Moves the parameters by `share` of the gradient, downhill."""
        ...


class Filling:
    """No model: the gradient is a pattern whose sums are exact. Filling it is part of the drawn time."""

    def __init__(self, worker: int, gradient: torch.Tensor) -> None:
        self._worker = worker
        self._pattern = pattern(gradient.numel()).to(gradient.device)
        self.gradient = gradient
        self.parameters = torch.zeros_like(gradient)

    def record_in(self, recorder: Recorder) -> None:
        """There is nothing to tell."""

    def work(self, step: int, start: float) -> float:
        """Fills the gradient."""
        torch.mul(self._pattern, factor(self._worker, step), out=self.gradient)
        return start

    def descend(self, share: float) -> None:
        """A gradient step with a learning rate of 1."""
        self.parameters.sub_(self.gradient, alpha=share)


def factor(worker: int, step: int) -> int:
    """How many times the pattern a worker's gradient of a step is, where there is no model."""
    return worker + 1 + step % LARGEST_FACTOR


class Training:
    """A model: forward and backward for real, where the gradient is, and then the drawn time on top."""

    def __init__(
        self, scenario: Scenario, worker: int, gradient: torch.Tensor, stopwatch: Stopwatch = ON_CPU
    ) -> None:  # fmt: skip
        self._worker = worker
        self._stopwatch = stopwatch
        self._problem = problem_on(gradient.device, scenario)
        self._batches = Batches(
            len(self._problem.training), scenario.cluster.workers, scenario.workload.batch, scenario.seed
        )
        self.gradient = gradient
        self.parameters = torch.empty_like(gradient)
        self._adopt()
        self.record_in(Recorder())

    def _adopt(self) -> None:
        """The model's parameters and gradients become parts of the two flat tensors."""
        place = 0
        for parameter in self._problem.model.parameters():
            own = slice(place, place + parameter.numel())
            place = own.stop
            self.parameters[own] = parameter.detach().flatten()
            parameter.data = self.parameters[own].view_as(parameter)
            parameter.grad = self.gradient[own].view_as(parameter)
        assert place == len(self.parameters), "the workload counts the parameters that the model has"

    def record_in(self, recorder: Recorder) -> None:
        """Forwards, backwards and losses."""
        self._forwards, self._backwards = recorder.table("forwards"), recorder.table("backwards")
        self._losses = recorder.table("losses")

    def work(self, step: int, start: float) -> float:
        """Forward and backward on the step's batch."""
        self.gradient.zero_()
        with plain_convolutions():
            loss = self._problem.loss_of(torch.from_numpy(self._batches.of(self._worker, step)))
            between = self._stopwatch.moment()
            loss.backward()  # type: ignore[no-untyped-call] # torch
        end = self._stopwatch.wait()
        self._forwards((step, start, between()))
        self._backwards((step, between(), end))
        self._losses((step, loss.item()))
        return end

    def descend(self, share: float) -> None:
        """A gradient step."""
        self.parameters.sub_(self.gradient, alpha=LEARNING_RATE * share)


def problem_on(place: torch.device, scenario: Scenario) -> Problem:
    """The scenario's problem, its model and its data at `place`."""
    found = problem(scenario.workload, scenario.seed)
    training = Data(found.training.inputs.to(place), found.training.targets.to(place))
    return replace(found, model=found.model.to(place), training=training)


def computation_of(scenario: Scenario, worker: int, device: Device) -> Computation:
    """What `worker` computes in this scenario."""
    gradient = torch.zeros(num_floats(scenario.gradient_bytes), device=device.place)
    if scenario.workload.model is None:
        return Filling(worker, gradient)
    return Training(scenario, worker, gradient, device.stopwatch)
