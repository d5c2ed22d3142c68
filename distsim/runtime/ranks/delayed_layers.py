"""Layers whose backward takes the drawn time, so that gradients come layer by layer, the last layer first."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from distsim.learning.batches import Batches
from distsim.runtime.devices.stopwatch import Stopwatch
from distsim.runtime.profiling.own_model import BuiltBuffers, OwnModel
from distsim.runtime.ranks.computation import factor
from distsim.runtime.ranks.task import problem_on
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.transport.messages import pattern
from distsim.scenario import Scenario


class Pace:
    """Divides the drawn time of a backward into equal parts: a layer's gradient is there when its part is over.

    absorbs: whether the layers' own computation is part of the drawn time; otherwise it comes on top.
    """

    def __init__(self, layers: int, stopwatch: Stopwatch, *, absorbs: bool) -> None:
        self._layers = layers
        self._stopwatch = stopwatch
        self._absorbs = absorbs
        self.begin(0.0, 0.0)

    def begin(self, now: float, seconds: float) -> None:
        """Backward begins at `now`, in seconds of the monotonic clock, and takes `seconds`."""
        self._moment, self._part = now, seconds / self._layers

    def pause(self) -> None:
        """Waits for the next layer's part. Without drawn time it waits for nothing, not even earlier layers."""
        if self._part > 0.0:
            self._moment = (self._moment if self._absorbs else self._stopwatch.wait()) + self._part
            sleep_until(self._moment)


class Pause(torch.autograd.Function):
    """Follows a layer. Forward does nothing; backward reaches it before the layer, and waits for the layer's part."""

    @staticmethod
    def forward(ctx: Any, outputs: torch.Tensor, pace: Pace) -> torch.Tensor:
        """Passes the values on."""
        ctx.pace = pace
        return outputs.view_as(outputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Passes the gradient back after the pause."""
        ctx.pace.pause()
        return gradient, None


def paused(outputs: torch.Tensor, pace: Pace) -> torch.Tensor:
    """A layer's outputs, followed by the pause."""
    delayed: torch.Tensor = Pause.apply(outputs, pace)  # type: ignore[no-untyped-call] # torch
    return delayed


class Filled(torch.autograd.Function):
    """A layer without a model: its gradient is a given tensor."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, parameter: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        """Passes the values on."""
        ctx.gradient = gradient
        return inputs.view_as(inputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Passes the gradient back, with the given gradient for the parameter."""
        return gradient, ctx.gradient, None


class FilledLayers(nn.Module):
    """No model: layers of equal size whose gradients are a pattern with exact sums."""

    def __init__(self, layers: int, floats: int, worker: int, pace: Pace, place: torch.device) -> None:
        super().__init__()
        self._worker = worker
        self._pace = pace
        self._pattern = pattern(floats).to(place)
        self._gradient = torch.zeros(floats, device=place)
        self._bounds = [layer * floats // layers for layer in range(layers + 1)]
        self.layers = nn.ParameterList(
            torch.zeros(end - start, device=place) for start, end in zip(self._bounds, self._bounds[1:], strict=False)
        )

    def forward(self, step: int) -> torch.Tensor:
        """A scalar whose backward fills the gradients of step `step`."""
        torch.mul(self._pattern, factor(self._worker, step), out=self._gradient)
        value = torch.zeros(1, device=self._gradient.device)
        for parameter, start, end in zip(self.layers, self._bounds, self._bounds[1:], strict=False):
            value = Filled.apply(value, parameter, self._gradient[start:end])  # type: ignore[no-untyped-call] # torch
            value = paused(value, self._pace)
        return value.sum()

    def expected(self, workers: int, steps: range) -> list[torch.Tensor]:
        """For each layer, the mean over the workers of their summed gradients of these steps."""
        total = sum(factor(worker, step) for worker in range(workers) for step in steps)
        mean = self._pattern * (total / workers)
        return [mean[start:end] for start, end in zip(self._bounds, self._bounds[1:], strict=False)]


class PacedModel(nn.Module):
    """A real model with a pause after each layer. Its forward returns the loss of one step's batch."""

    def __init__(self, scenario: Scenario, worker: int, pace: Pace, place: torch.device) -> None:
        super().__init__()
        self._problem = problem_on(place, scenario)
        self._batches = Batches(
            len(self._problem.training), scenario.cluster.workers, scenario.workload.batch, scenario.seed
        )
        self._worker = worker
        self._pace = pace
        self.model = self._problem.model

    def forward(self, step: int) -> torch.Tensor:
        """The loss, a scalar."""
        samples = torch.from_numpy(self._batches.of(self._worker, step))
        values, layers = self._problem.training.inputs[samples], self._problem.layers
        for child in self.model:
            values = child(values)
            if any(child is layer for layer in layers):
                values = paused(values, self._pace)
        return self._problem.loss(values, self._problem.training.targets[samples])


class PacedOwnModel(nn.Module):
    """A model of the user's own with a pause before each gradient. Its forward returns the loss of the batch."""

    def __init__(self, own: OwnModel, pace: Pace) -> None:
        super().__init__()
        self.model = own.module
        self._own, self._built = own, BuiltBuffers(own.module)
        for parameter in own.layers.values():
            parameter.register_hook(lambda _gradient: pace.pause())  # type: ignore[no-untyped-call] # torch

    def forward(self, step: int) -> torch.Tensor:
        """The loss, a scalar."""
        self._built.put_back_before(step)
        return self._own.loss()
